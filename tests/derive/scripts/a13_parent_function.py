#!/usr/bin/env python3
import argparse


def common_arguments():
    parent = argparse.ArgumentParser(add_help=False)
    parent.add_argument("--timeout", type=float, default=30.0)
    group = parent.add_mutually_exclusive_group()
    group.add_argument("--json", action="store_true")
    group.add_argument("--yaml", action="store_true")
    return parent


def main(argv=None):
    parser = argparse.ArgumentParser(parents=[common_arguments()])
    parser.add_argument("host")
    args = parser.parse_args(argv)
    return 0 if args.host else 1


if __name__ == "__main__":
    raise SystemExit(main())
