"""Print results: on a terminal, as JSON, as SARIF."""
