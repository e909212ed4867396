#!/usr/bin/env python3
import argparse

from dataclasses import dataclass


@dataclass
class Config:
    rate: float = 0.1
    name: str = "run"


defaults = Config()
parser = argparse.ArgumentParser()
parser.add_argument("--rate", type=float, default=defaults.rate)
parser.add_argument("--name", default=Config.name)
parser.add_argument("--steps", type=int, default=1_000)
config = Config(**{k: v for k, v in vars(parser.parse_args()).items() if k != "steps"})
