"""A document library: ingest, search, change and prune."""
