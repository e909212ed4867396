"""Serve web pages for people."""
