"""Built sites of any generator as documents: which HTML files are pages, their content as Markdown, their addresses."""
