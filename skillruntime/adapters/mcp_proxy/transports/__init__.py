"""The ways to reach a server: as a child process, or at a URL."""
