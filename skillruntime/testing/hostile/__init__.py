"""Skills, schemas and payloads that attack the library that loads them, and the required outcome for each.

``python -m skillruntime.testing.hostile --adapter MODULE`` runs them against any loader and prints a table.
"""
