#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser(fromfile_prefix_chars="@")
parser.add_argument("names", nargs="+")
parser.add_argument("--note")
parser.parse_args()
