#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tag", action="append", help="May be repeated")
    parser.add_argument("--pairs", action="append", nargs=2, metavar=("K", "V"))
    parser.add_argument("--ids", action="extend", nargs="+", type=int)
    parser.add_argument("-v", action="count", default=0)
    parser.add_argument("--quiet", action="store_false", dest="loud")
    parser.add_argument("--fast", action="store_const", const=5, dest="speed", default=1)
    parser.add_argument("--version", action="version", version="1.0")
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
