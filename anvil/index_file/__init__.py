"""The index file: the only place with SQL, and the only door to SQLite and sqlite-vec.

:mod:`connection` opens files and translates errors. :mod:`verify` decides whether a file can be trusted. :mod:`reader`
has the queries, :mod:`writer` the changes to a working copy. :mod:`publish` writes a working copy to an index file,
under a lock. A document library is another kind of file with the same tables and some more: see
:mod:`anvil.library.library_file`.
"""
