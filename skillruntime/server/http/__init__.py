"""Serve the protocol over HTTP: the application, its requests and its responses."""
