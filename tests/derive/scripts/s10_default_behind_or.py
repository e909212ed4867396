"""Count the leaves of a tree."""
import sys
from pathlib import Path


def main(argv=None):
    argv = argv or sys.argv[1:]
    if not argv:
        print("usage: s10_default_behind_or.py tree [season]", file=sys.stderr)
        return 2
    tree = Path(argv[0])
    season = argv[1] if len(argv) > 1 else "autumn"
    print(tree.name, season)
    return 0


if __name__ == "__main__":
    sys.exit(main())
