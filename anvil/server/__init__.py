"""The MCP server: any toolsets together, over stdio, streamable HTTP or SSE.

Only this package imports the SDK (``mcp``), Starlette and uvicorn, for HTTP and SSE. The SDK is slow to load: stdio
speaks the protocol without it. The content of each answer exists once, in ``protocol`` and ``page_resources``.
"""
