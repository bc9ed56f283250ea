"""The index file: the only place with SQL, and the only door to SQLite and sqlite-vec.

:mod:`connection` opens files and translates errors, :mod:`checking` decides whether a file may be trusted,
:mod:`reading` answers, :mod:`writing` changes a working copy, :mod:`publishing` turns one into an artifact.
A document library is a file of its own kind with the same tables: :mod:`library_file` opens it, :mod:`library_reading`
and :mod:`library_writing` go on from there, :mod:`staging` holds a document in the making.
"""
