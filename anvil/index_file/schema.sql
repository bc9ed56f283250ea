-- The index file, format 5. Row ids are hashes of names (see table_rows.py), so an edit in the middle of a page does not
-- renumber the rest. connection.py adds the vector table, because its width depends on the model. verify.py compares every
-- definition in a file with these, word for word, except the comments.

CREATE TABLE anvil_meta (
  key TEXT PRIMARY KEY,
  value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE documents (
  id INTEGER PRIMARY KEY,
  library TEXT NOT NULL,
  file_path TEXT NOT NULL,
  title TEXT NOT NULL,
  file_type TEXT NOT NULL,
  blob_id TEXT NOT NULL,        -- git blob id of the source bytes; '' for a page without a source file
  fingerprint TEXT NOT NULL,    -- of all that a site generator handed over; '' for a file as it lies there
  content_hash BLOB NOT NULL,   -- SHA-256 of the text
  size INTEGER NOT NULL,        -- bytes of the source
  last_modified TEXT NOT NULL,
  url TEXT,
  nav_path TEXT,
  metadata TEXT NOT NULL,       -- JSON
  digest BLOB NOT NULL          -- SHA-256 over this document, its sections and its chunks with their text
);

CREATE UNIQUE INDEX documents_path ON documents (library, file_path);

CREATE TABLE sections (
  document_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  heading_path TEXT NOT NULL,
  heading_level INTEGER NOT NULL,
  anchor TEXT NOT NULL,
  start INTEGER NOT NULL,       -- span in the page's text, in characters
  "end" INTEGER NOT NULL,
  start_line INTEGER NOT NULL,  -- 1-based, inclusive, in the source file; 0 for a text that stands in none
  end_line INTEGER NOT NULL,
  PRIMARY KEY (document_id, ordinal)
) WITHOUT ROWID;

CREATE TABLE chunks (
  id INTEGER PRIMARY KEY,
  chunk_id BLOB NOT NULL,       -- hash of file path, breadcrumb, occurrence and part
  document_id INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  heading_path TEXT NOT NULL,
  heading_level INTEGER NOT NULL,
  start INTEGER NOT NULL,       -- where it begins in the page's text, in characters
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  page INTEGER NOT NULL,        -- of a paged document; 0 when unknown
  char_count INTEGER NOT NULL,
  title TEXT NOT NULL,          -- the document's, for the keyword index
  terms TEXT NOT NULL,          -- what it is to be found by besides: parts of compounds, CJK pairs
  content TEXT NOT NULL,        -- its text; U+007F or U+001F for each character that readers do not see
  hidden TEXT NOT NULL          -- those characters, in order
);

-- An entry of the first column is two bytes shorter than one of another, and most words are in the content.
CREATE VIRTUAL TABLE chunks_fts USING fts5 (
  content, heading_path, title, terms,
  content='chunks', content_rowid='id',
  tokenize='porter unicode61 remove_diacritics 2'
);

CREATE TABLE windows (
  id INTEGER PRIMARY KEY,       -- chunks.id * 4096 + its number; also the row of its vector
  start INTEGER NOT NULL,       -- span in the chunk's content, in characters
  "end" INTEGER NOT NULL,
  key BLOB NOT NULL             -- hash of the exact text embedded: equal keys, equal vectors
);
