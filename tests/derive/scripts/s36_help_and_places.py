"""Weigh apples.

Usage:
    python s36_help_and_places.py BASKET [WEIGHT]
"""
import sys


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        sys.exit(0 if len(sys.argv) > 1 else 1)
    basket = sys.argv[1]
    weight = float(sys.argv[2]) if len(sys.argv) >= 3 else 1.5
    print(basket, weight)


if __name__ == "__main__":
    main()
