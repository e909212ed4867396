"""Parse the text that a model wrote for a call into arguments."""
