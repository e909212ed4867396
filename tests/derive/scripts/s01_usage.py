#!/usr/bin/env python3
"""
Split a file in parts.

Usage:
    python s01_usage.py <input> <size> [prefix]
"""
import sys


def main():
    if len(sys.argv) < 3:
        print(__doc__)
        sys.exit(1)
    source = sys.argv[1]
    size = int(sys.argv[2])
    prefix = sys.argv[3] if len(sys.argv) > 3 else "part"
    print(source, size, prefix)


if __name__ == "__main__":
    main()
