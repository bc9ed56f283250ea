"""MCP clients as data: their files and entries, and edits of these files as text"""
