"""Glue two pages together."""
import sys


def glue(front_page, back_page):
    print(front_page, back_page, sep="|")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("Usage: s09_exact_number.py [front page] [back page]")
        sys.exit(1)
    glue(sys.argv[1], sys.argv[2])
