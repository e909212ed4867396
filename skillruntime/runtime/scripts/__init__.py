"""Run the scripts of skills."""
