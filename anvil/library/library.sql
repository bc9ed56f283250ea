-- The tables that a library file has in addition to those of schema.sql. Several processes write it (WAL mode). It has
-- no sections, no digests and no counts.

CREATE TABLE holdings (         -- one row a document, beside its row in documents
  id INTEGER PRIMARY KEY,       -- documents.id
  doc_id TEXT NOT NULL UNIQUE,  -- hash of library and source: it stays when a document is replaced
  content_hash TEXT NOT NULL,   -- SHA-256 of what was handed in, before conversion
  created_at TEXT NOT NULL,
  chunk_count INTEGER NOT NULL,
  head TEXT NOT NULL            -- what the chunks leave out: a byte order mark, front matter, text that is all blank
);

CREATE TABLE labels (           -- values of metadata's top level that filters compare
  key TEXT NOT NULL,
  value TEXT NOT NULL,          -- JSON
  document_id INTEGER NOT NULL,
  PRIMARY KEY (key, value, document_id)
) WITHOUT ROWID;

CREATE INDEX chunks_page ON chunks (page);  -- small enough to be read whole when a library is opened
CREATE INDEX labels_document ON labels (document_id);
CREATE INDEX documents_file_type ON documents (file_type);
CREATE INDEX documents_last_modified ON documents (last_modified);
CREATE INDEX documents_source ON documents (file_path);
CREATE INDEX documents_title ON documents (title);

CREATE TABLE changes (          -- the number of the last change of each document id that was ever in use
  document_id INTEGER PRIMARY KEY,
  number INTEGER NOT NULL
);

CREATE INDEX changes_number ON changes (number);
