"""The inputs of a skill's test: calls that are shown or generated, and files."""
