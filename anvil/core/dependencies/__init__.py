"""Dependencies of a project: their names and versions in lockfiles, and where their documentation is"""
