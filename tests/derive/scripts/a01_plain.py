#!/usr/bin/env python3
"""Copy a file, line by line.

Usage: a01_plain.py input
"""
import argparse


def main():
    parser = argparse.ArgumentParser(description='Copy lines')
    parser.add_argument("input", help="File to read")
    parser.add_argument("-o", "--output", default="out.txt", help="Where to write (default: %(default)s)")
    parser.add_argument("--limit", type=int, default=10)
    parser.add_argument("-v", "--verbose", action="store_true", help="Say more")
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
