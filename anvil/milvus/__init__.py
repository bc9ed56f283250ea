"""An index in Milvus: exported to collections, and searched by the same queries as a file.

pymilvus is imported in this folder only, and late. :mod:`milvus_client` sends requests and translates errors,
:mod:`milvus_collections` defines the collections and writes a generation of them, :mod:`milvus_reader` reads it, and
:mod:`milvus_index` finds the candidates of a search.
"""
