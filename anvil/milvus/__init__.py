"""An index in Milvus: exported to collections, and searched by the same queries as a file.

pymilvus is imported here only, and late. :mod:`milvus_client` sends requests and translates errors,
:mod:`milvus_collections` defines the collections and writes a generation of them, and :mod:`milvus_reader` has the
queries.
"""
