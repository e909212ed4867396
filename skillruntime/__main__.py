"""``python -m skillruntime``: the command line."""

from __future__ import annotations

from skillruntime.cli import main

if __name__ == "__main__":
    main()
