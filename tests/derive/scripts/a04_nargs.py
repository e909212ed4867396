#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pair", nargs=2, metavar=("A", "B"))
    parser.add_argument("rest", nargs="*")
    parser.add_argument("--point", nargs=3, type=float)
    parser.add_argument("--names", nargs="+", default=["x", "y"])
    parser.add_argument("--maybe", nargs="?", const="yes", default="no")
    parser.add_argument("--one", nargs=1)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
