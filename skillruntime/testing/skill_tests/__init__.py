"""Test skills with calls generated from their contracts.

The public names are in `skillruntime.testing`.
"""
