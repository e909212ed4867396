"""Read the callables of a skill from its written contracts, and from scripts without a
contract.
"""
