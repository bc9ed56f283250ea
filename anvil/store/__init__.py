"""The index file: the only place with SQL, and the only door to SQLite and sqlite-vec.

:mod:`connection` opens files and translates errors, :mod:`checking` decides whether a file may be trusted,
:mod:`reading` answers, :mod:`writing` changes a working copy, :mod:`publishing` turns one into an artifact.
"""
