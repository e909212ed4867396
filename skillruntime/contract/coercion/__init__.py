"""Coercion: what a value can be converted to, which of the results fits its schema, and
the record of repairs.
"""
