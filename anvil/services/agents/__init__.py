"""`anvil agents`: the map of the documentation in the files that agents read"""
