"""The bridge to MCP servers, and the harness as one."""
