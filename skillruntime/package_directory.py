"""Where the package's own files lie: the only place that knows its depth."""

from __future__ import annotations

import os

__all__ = ["PACKAGE_DIRECTORY"]

# Not pathlib, which takes longer to import than all the rest of a short command.
PACKAGE_DIRECTORY = os.path.dirname(os.path.abspath(__file__))
"""The directory of the package ``skillruntime``, absolute."""
