"""Check skills: by the format's rules, by the environment, and against a lockfile."""
