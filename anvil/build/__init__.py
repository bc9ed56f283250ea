"""A build: documents to an index file. Only changed pages are read, cut and embedded. Shards are joined here, too."""
