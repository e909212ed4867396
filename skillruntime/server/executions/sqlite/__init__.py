"""Run executions on one server, in memory or in a SQLite file."""
