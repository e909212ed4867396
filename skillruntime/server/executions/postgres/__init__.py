"""Executions of several servers, carried by DBOS on PostgreSQL."""
