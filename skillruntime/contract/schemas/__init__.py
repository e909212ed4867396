"""Validate values by a schema: whether a value fits, and if not, its violations and
their places.
"""
