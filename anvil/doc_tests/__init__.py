"""Tests of documentation: questions, the pages that should answer them, and the page to blame: ``anvil test``."""
