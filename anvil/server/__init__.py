"""The MCP server: any toolsets together, over stdio, streamable HTTP or SSE.

Only this package imports the SDK (``mcp``), Starlette and uvicorn. The SDK is slow to load: over stdio,
``initialize`` and ``early_answers`` answer without it.
"""
