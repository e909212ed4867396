#!/usr/bin/env python3
import argparse

import os

parser = argparse.ArgumentParser()
parser.add_argument("--plugin", choices=sorted(os.listdir("/")))
parser.add_argument("--plain", default="x")
parser.parse_args()
