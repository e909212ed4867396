"""The pages of the server for people."""
