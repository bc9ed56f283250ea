"""Exporting an index to Milvus, and searching it there."""
