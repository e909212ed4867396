"""Skills, schemas and payloads that attack whatever loads them, with what must happen to each.

``python -m skillruntime.testing.hostile --adapter MODULE`` runs them against any loader and prints a table.
"""
