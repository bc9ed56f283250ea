"""The MCP tools, a module per surface."""
