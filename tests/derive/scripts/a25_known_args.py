#!/usr/bin/env python3
import argparse

pre = argparse.ArgumentParser(add_help=False)
pre.add_argument("--config")
known, rest = pre.parse_known_args()
parser = argparse.ArgumentParser(parents=[pre])
parser.add_argument("--name", default="x")
args = parser.parse_args(rest)
