"""An index in Milvus: its collections, written whole and read by the same questions as a file.

One outside thing: pymilvus is imported here, late, and nowhere else. ``client`` asks and translates what goes wrong,
``layout`` says which collections there are, ``writing`` makes a generation of them, ``reading`` answers from one.
"""
