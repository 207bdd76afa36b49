"""The daemon as an MCP server: other agents ask it and look things up."""
