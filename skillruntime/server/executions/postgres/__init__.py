"""Run executions on several servers with DBOS on PostgreSQL."""
