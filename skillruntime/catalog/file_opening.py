"""How the files of skills are opened: for reading bytes, without waiting for the writer of a FIFO."""

from __future__ import annotations

import os

__all__ = ["READ_FLAGS"]

READ_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
"""For `os.open`; callers that must not follow a link add ``O_NOFOLLOW``."""
