"""Store and run executions: the interface of a store, and the code that all stores
share.
"""
