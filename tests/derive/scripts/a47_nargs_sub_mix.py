#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--log-level", default="INFO", choices=["DEBUG", "INFO", "WARNING"], type=str.upper)
sub = parser.add_subparsers(dest="command", required=True)
one = sub.add_parser("convert", description="Convert files from one form to another")
one.add_argument("inputs", nargs="+")
one.add_argument("--to", required=True, choices=["pdf", "html"])
one.add_argument("--page", type=int, nargs="*")
two = sub.add_parser("info")
two.add_argument("input")
group = two.add_mutually_exclusive_group()
group.add_argument("--short", action="store_true")
group.add_argument("--long", action="store_true")
parser.parse_args()
