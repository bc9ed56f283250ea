"""Tests of documentation: questions, the pages that should answer them, and which edited page is to blame: ``anvil
test``."""
