import argparse
from typing import Literal, get_args

Order = Literal["rising", "falling"]
Side = Literal["left", "right"]

parser = argparse.ArgumentParser(description="Sort lines")
parser.add_argument("--order", choices=get_args(Order), default="rising")
parser.add_argument("--side", choices=list(Side.__args__))
parser.parse_args()
