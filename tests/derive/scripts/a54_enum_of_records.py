import argparse
from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True)
class Plan:
    word: str
    text: str
    steps: tuple = ()


class Plans(Enum):
    WALK = Plan("walk", "Go on foot", ("shoes", "gate"))
    RIDE = Plan("ride", "Take the train")


parser = argparse.ArgumentParser()
commands = parser.add_subparsers(dest="plan", required=True)
for each in Plans:
    below = commands.add_parser(each.value.word, help=each.value.text)
    below.add_argument("place")
    below.add_argument("--steps", type=int, default=len(each.value.steps))
parser.parse_args()
