#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--host")
parser.add_argument("--port", type=int)
parser.set_defaults(host="localhost", port=80)
parser.parse_args()
