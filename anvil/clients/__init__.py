"""MCP clients and their configuration files: ``anvil init --client``."""
