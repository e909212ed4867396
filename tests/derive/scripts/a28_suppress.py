#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
parser.add_argument("--name")
parser.add_argument("--hidden", help=argparse.SUPPRESS)
parser.add_argument("--size", type=int, default=argparse.SUPPRESS)
parser.parse_args()
