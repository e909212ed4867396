#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--json", dest="output", action="store_const", const="json", default="text")
    parser.add_argument("--csv", dest="output", action="store_const", const="csv")
    parser.add_argument("--wait", dest="wait", action="store_true", default=True)
    parser.add_argument("--no-wait", dest="wait", action="store_false")
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--max", dest="level", action="store_const", const=9)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
