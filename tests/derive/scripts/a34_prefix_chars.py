#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser(prefix_chars="-+")
parser.add_argument("+x", "++extra", action="store_true")
parser.add_argument("-y", "--why")
parser.parse_args()
