#!/usr/bin/env python3
import argparse

import os

parser = argparse.ArgumentParser()
parser.add_argument("--known")
for name in os.environ.get("EXTRA_FLAGS", "alpha beta").split():
    parser.add_argument(f"--{name}")
parser.parse_args()
