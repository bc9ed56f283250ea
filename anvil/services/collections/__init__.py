"""Several indexes that answer together: which a project has, and one ranking over all of them"""
