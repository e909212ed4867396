#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--verbose", action="store_true")
groups = parser.add_subparsers(dest="group", required=True)
remote = groups.add_parser("remote")
actions = remote.add_subparsers(dest="action", required=True)
add = actions.add_parser("add", help="Add a remote")
add.add_argument("url")
add.add_argument("--name", default="origin")
drop = actions.add_parser("drop")
drop.add_argument("name")
status = groups.add_parser("status")
status.add_argument("--short", action="store_true")
args = parser.parse_args()
print(args)
