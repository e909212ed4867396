#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("in-file")
    parser.add_argument("--max-count", type=int, dest="maximum")
    parser.add_argument("--with-very-long-name", "-w")
    parser.add_argument("--2d", action="store_true")
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
