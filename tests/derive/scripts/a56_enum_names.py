import argparse
import enum


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mode(enum.Enum):
    fast = enum.auto()
    exact = enum.auto()


parser = argparse.ArgumentParser()
parser.add_argument("--level", choices=[level.name.lower() for level in Level], default=Level.LOW.name.lower())
parser.add_argument("--number", type=int, choices=[level.value for level in Level])
parser.add_argument("--mode", choices=Mode.__members__.keys(), default=Mode.fast.name)
parser.add_argument("--other", choices=[*Mode.__members__, "none"], default="none")
parser.parse_args()
