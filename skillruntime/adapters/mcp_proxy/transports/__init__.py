"""How the proxy reaches a server: as a child process, or at a URL."""
