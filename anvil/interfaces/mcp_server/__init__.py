"""The MCP server: any toolsets together, over stdio, streamable HTTP or SSE.

    toolset.py     what a toolset is: tools over one object, as data and calls; knows no protocol
    docs.py, library.py, context.py   the toolsets
    upload.py      ``POST /upload``, files into the library
    arguments.py   a caller's arguments -> checked values
    schemas.py     results -> JSON Schema, and results -> JSON
    app.py         the SDK's server object: tools, prompts, logging
    connections.py   the standing connections
    resources.py   pages as resources, completion, change notifications
    bridge.py    the one place where the protocol's event loop hands work to threads
    announcing.py  progress of long work: to stderr and to clients
    greeting.py    ``initialize`` answered before the SDK is loaded
    wire.py        stdin and stdout as lines, nothing else on stdout
    stdio.py, http.py, guard.py   transports, and who may use them
    waiting.py     how long an HTTP connection may keep the server waiting
    logs.py        what is written on stderr

The SDK (``mcp``), Starlette and uvicorn are imported in this package only.
"""
