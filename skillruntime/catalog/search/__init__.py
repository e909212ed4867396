"""Find the skills that fit a query, and the names that are close to a wrong one."""
