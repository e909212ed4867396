"""Compare everyday operations of this checkout with those of another revision."""
