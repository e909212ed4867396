#!/usr/bin/env python3
import argparse

SPECS = [
    {"flags": ["-n", "--name"], "options": {"required": True, "help": "Name"}},
    {"flags": ["--count"], "options": {"type": int, "default": 1}},
    {"flags": ["--force"], "options": {"action": "store_true"}},
]
parser = argparse.ArgumentParser()
for spec in SPECS:
    parser.add_argument(*spec["flags"], **spec["options"])
args = parser.parse_args()
