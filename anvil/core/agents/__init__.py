"""A map of the documentation for the files that agents read, and its place between two markers"""
