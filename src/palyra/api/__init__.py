"""The doors: HTTP, server-sent events, WebSocket, HTTP/3 and gRPC."""

from palyra.system.light_packages import open_lightly

# The package imports its command line, a reloader and what starts several processes; the server
# needs none of them.
open_lightly("uvicorn", {"Config": "uvicorn.config", "Server": "uvicorn.server"})
