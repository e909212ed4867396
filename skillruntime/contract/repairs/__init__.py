"""Repair arguments that do not fit their schema."""
