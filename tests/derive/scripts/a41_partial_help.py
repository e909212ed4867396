#!/usr/bin/env python3
import argparse

from functools import partial

EXTENSIONS = (".png", ".jpg")
HELP = "Suffixes: {}".format(" ".join(EXTENSIONS))

parser = argparse.ArgumentParser(description="Resize " + "images")
flag = partial(parser.add_argument, action="store_true")
flag("--recursive", help="Go down")
flag("--keep")
parser.add_argument("--suffix", choices=EXTENSIONS, default=EXTENSIONS[0], help=HELP)
parser.add_argument("--quality", type=int, default=5 * 17, help="%(dest)s, from 1 to 100")
parser.parse_args()
