"""`anvil test`: a suite asked of an index, compared with another, and written"""
