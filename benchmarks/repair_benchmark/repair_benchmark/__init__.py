"""Malformed tool calls with known answers, and what engines make of them."""

from repair_benchmark.cases import cases, data_version

__all__ = ["cases", "data_version"]
