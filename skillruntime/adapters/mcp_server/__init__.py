"""What the MCP server of skills answers, and who may use its port."""
