"""Executions of one server, in memory or in a SQLite file."""
