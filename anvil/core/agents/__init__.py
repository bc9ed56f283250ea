"""What agents read without being asked to: a map of the documentation, and its place between markers in their files"""
