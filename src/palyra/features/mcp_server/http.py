"""The rows of the MCP server: what its tools need is read from the rows of the others."""

from palyra.features.mcp_server.endpoint import rows as rows_over

__all__ = ["rows_over"]
