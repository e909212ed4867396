#!/usr/bin/env python3
import argparse


def parse():
    parser = argparse.ArgumentParser()
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--file", help="Read a file")
    source.add_argument("--url", help="Read a URL")
    source.add_argument("--stdin", action="store_true")
    noise = parser.add_mutually_exclusive_group()
    noise.add_argument("-q", "--quiet", action="store_true")
    noise.add_argument("-v", "--verbose", action="store_true")
    parser.add_argument("--depth", type=int, default=1)
    return parser.parse_args()


print(parse())
