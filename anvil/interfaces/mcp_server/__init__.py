"""The MCP server: any toolsets together, over stdio, streamable HTTP or SSE.

    tools/             the toolsets: ``docs.py``, ``library.py``, ``context.py``, over the types of ``toolset.py``
    arguments.py       validation of a tool's arguments
    schemas.py         results as JSON Schema and as JSON
    app.py             the SDK's server object with the tools, resources and log levels
    resources.py       pages as resources, completion, change notifications
    subscriptions.py   the open connections and their subscriptions
    threads.py         runs calls in threads, so that the event loop is never blocked
    progress.py        progress of long work, to stderr and to clients
    initialize.py      the answer to ``initialize``, before the SDK is loaded
    stdio.py           the stdio transport, over the lines of ``stdio_pipe.py``
    http.py            the HTTP transports, with ``security.py`` (who may connect) and ``http_timeouts.py``
    oauth.py           access tokens of an identity provider
    asgi.py            ``anvil.asgi:app``, configured by variables, with ``rate_limit.py``
    lifespan.py        starts and stops the app for a transport
    signals.py         orderly shutdown
    upload.py          ``POST /upload``: files into the library
    playground.py      the web page in ``ui/``, and its JSON API
    logs.py            log lines on stderr

Only this package imports the SDK (``mcp``), Starlette and uvicorn.
"""
