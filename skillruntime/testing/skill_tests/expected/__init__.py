"""What own cases expect of a call, and the comparison with what it gives."""
