"""Read what can be called in a skill: written contracts, and scripts without one."""
