import argparse
import functools
from functools import partial

parser = argparse.ArgumentParser()
add = parser.add_argument
switch = partial(parser.add_argument, action="store_true")
number = functools.partial(add, type=int, default=0)
add("name")
switch("--bold")
switch("-u", "--underline", help="A line below")
number("--size", default=12)
number("--indent")
parser.parse_args()
