"""Read what the commands are given: directories of skills, contracts, arguments."""
