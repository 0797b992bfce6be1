"""The MCP client: tools of servers that run as commands or answer over HTTP (spec 5, reference 2.10)."""
