"""What the proxy's log says."""
