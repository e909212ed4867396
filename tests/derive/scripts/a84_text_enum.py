import argparse
from enum import Enum, StrEnum


class Shape(str, Enum):
    ROUND = "round"
    SQUARE = "square"


class Colour(StrEnum):
    RED = "red"
    PALE_BLUE = "pale-blue"


parser = argparse.ArgumentParser()
parser.add_argument("--shape", type=Shape, choices=list(Shape), default=Shape.ROUND)
parser.add_argument("--plain", choices=[shape.value for shape in Shape], default=Shape.SQUARE.value)
parser.add_argument("--colour", type=Colour, choices=Colour, default=Colour.RED)
parser.add_argument("--any", choices=[str(colour) for colour in Colour])
parser.parse_args()
