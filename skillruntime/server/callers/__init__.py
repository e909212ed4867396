"""Who calls, and what a caller may do."""
