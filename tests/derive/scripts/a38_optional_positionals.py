#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("source")
    parser.add_argument("target", nargs="?")
    parser.add_argument("mode", nargs="?", choices=["copy", "move"], default="copy")
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
