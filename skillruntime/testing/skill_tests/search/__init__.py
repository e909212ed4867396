"""Look for calls that show more than the calls from the contract alone."""
