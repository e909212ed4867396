"""Convert arguments of older contract versions, by steps that are data."""
