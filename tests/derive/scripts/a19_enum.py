#!/usr/bin/env python3
import argparse

from enum import Enum, IntEnum


class Color(str, Enum):
    RED = "red"
    GREEN = "green"


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"

    def __str__(self):
        return self.value


class Level(IntEnum):
    LOW = 1
    HIGH = 2


parser = argparse.ArgumentParser()
parser.add_argument("--color", choices=[c.value for c in Color], default=Color.RED.value)
parser.add_argument("--mode", type=Mode, choices=list(Mode), default=Mode.FAST)
parser.add_argument("--level", choices=[level.name.lower() for level in Level])
parser.add_argument("--rank", type=int, choices=[level.value for level in Level], default=1)
parser.parse_args()
