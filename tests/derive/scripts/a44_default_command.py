#!/usr/bin/env python3
import argparse


def show(args):
    print("shown")


parser = argparse.ArgumentParser()
parser.set_defaults(func=show)
sub = parser.add_subparsers(dest="command")
clean = sub.add_parser("clean", help="Clean up")
clean.add_argument("--all", action="store_true")
args = parser.parse_args()
args.func(args)
