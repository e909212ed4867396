"""A script's source -> the contract of calling it."""

from __future__ import annotations

from skillruntime.derive.derivation import Derivation, derive

__all__ = ["Derivation", "derive"]
