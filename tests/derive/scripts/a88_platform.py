import argparse
import os
import sys

parser = argparse.ArgumentParser()
parser.add_argument("--name")
if sys.platform == "win32":
    parser.add_argument("--registry", action="store_true")
if os.name == "posix":
    parser.add_argument("--owner", type=int)
parser.parse_args()
