"""``python -m skillruntime.cli``."""

from __future__ import annotations

from skillruntime.cli import main

if __name__ == "__main__":
    main()
