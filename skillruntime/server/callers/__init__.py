"""Identify callers, and decide what a caller may do."""
