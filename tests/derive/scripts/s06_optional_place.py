"""Greet somebody.

Usage: python s06_optional_place.py NAME [COUNT]
"""
import sys


def main():
    if len(sys.argv) < 2:
        print(__doc__)
        sys.exit(1)
    name = sys.argv[1]
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print(name * count)


if __name__ == "__main__":
    main()
