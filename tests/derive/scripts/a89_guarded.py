import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

DEBUG = False


def parse(argv: "Sequence[str] | None" = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("place")
    if DEBUG:
        parser.add_argument("--trace")
    if not DEBUG and __name__ == "__main__":
        parser.add_argument("--plain", action="store_true")
    return parser.parse_args(argv)


def main() -> int:
    options = parse()
    return len(options.place)


if __name__ == "__main__":
    exit(main())
