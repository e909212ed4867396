"""Store and run executions: the interface of a store, and what all stores share."""
