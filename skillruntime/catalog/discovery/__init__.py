"""Find the skills below directories, in packages and in other sources."""
