"""One outside thing per folder; its exceptions are translated there."""
