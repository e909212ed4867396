#!/usr/bin/env python3
import argparse
import json
import os
from datetime import datetime
from pathlib import Path


def positive_int(value):
    number = int(value)
    if number <= 0:
        raise argparse.ArgumentTypeError(f"{value} is not positive")
    return number


def unit(text: str) -> float:
    number = float(text)
    if number < 0 or number > 1:
        raise argparse.ArgumentTypeError("from 0 to 1")
    return number


def str2bool(v):
    if isinstance(v, bool):
        return v
    if v.lower() in ("yes", "true", "t", "1"):
        return True
    if v.lower() in ("no", "false", "f", "0"):
        return False
    raise argparse.ArgumentTypeError("a boolean is expected")


def existing_path(value):
    path = Path(value)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{value} is not there")
    return path


def parse_size(text: str) -> int:
    if text.endswith("k"):
        return int(text[:-1]) * 1024
    return int(text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=positive_int, default=1)
    parser.add_argument("--ratio", type=unit)
    parser.add_argument("--since", type=lambda s: datetime.strptime(s, "%Y-%m-%d"), help="YYYY-MM-DD")
    parser.add_argument("--names", type=lambda s: s.split(","), default="a,b")
    parser.add_argument("--numbers", type=lambda s: [int(x) for x in s.split(",")])
    parser.add_argument("--flag", type=str2bool, default=True)
    parser.add_argument("--on", type=lambda x: x.lower() == "true", default=False)
    parser.add_argument("--data", type=json.loads, default="{}")
    parser.add_argument("--where", type=existing_path)
    parser.add_argument("--size", type=parse_size)
    parser.add_argument("--weird", type=bool)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
