"""The answers of the MCP server of skills, and the protection of its port."""
