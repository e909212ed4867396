"""The typed layer for Agent Skills: load them cheaply, enforce their contracts, run them, answer in one envelope."""
