"""Locate the package's own files. Only this module knows the package's depth."""

from __future__ import annotations

import os

__all__ = ["PACKAGE_DIRECTORY"]

# Not pathlib, whose import takes longer than the rest of a short command.
PACKAGE_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
"""The absolute path of the package directory ``skillruntime``."""
