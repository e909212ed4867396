#!/usr/bin/env python3
import argparse

import sys

parser = argparse.ArgumentParser()
parser.add_argument("--always")
if sys.version_info >= (3, 9):
    parser.add_argument("--modern", action=argparse.BooleanOptionalAction, default=True)
if sys.platform == "win32":
    parser.add_argument("--windows")
try:
    import json as fast_json
except ImportError:
    fast_json = None
parser.add_argument("--pretty", action="store_true")
parser.parse_args()
