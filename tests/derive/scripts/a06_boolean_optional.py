#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--color", action=argparse.BooleanOptionalAction, default=True, help="Use colour")
    parser.add_argument("--cache", action=argparse.BooleanOptionalAction)
    parser.add_argument("--dry-run", action=argparse.BooleanOptionalAction, default=False)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
