"""The work of reading one script, in calls: what it must not repeat or grow with."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from types import FrameType
from typing import Any

from skillruntime.derive import derive

SCRIPT = '''\
"""Convert a table.

Usage: convert.py INPUT [--to FORMAT]
"""

import argparse
import sys


def checked(args):
    if not args.input and not args.to:
        print("--input or --to is required")
        sys.exit(2)
    for name in ("input", "to"):
        if getattr(args, name) == "none":
            raise SystemExit(f"{name} must not be none")
    return args


def main():
    parser = argparse.ArgumentParser(description="Convert a table.")
    parser.add_argument("input")
    parser.add_argument("--to", choices=["csv", "json"])
    args = checked(parser.parse_args())
    if args.to == "csv":
        with open(args.input) as file:
            print(file.read())
LINES

if __name__ == "__main__":
    main()
'''


def script(lines: int) -> str:
    """Return the script with this many more lines of code in its last function."""
    more = [f'    total_{number} = len("a" + "b")' for number in range(lines)]
    return SCRIPT.replace("LINES", "\n".join(more))


def calls(work: Callable[[], Any]) -> Counter[str]:
    """Return how often *work* calls each Python function; each step of a generator is
    a call.
    """
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            counted[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return counted


def test_a_script_is_parsed_and_walked_once() -> None:
    """The checks, the parser and the names are found in one list of its nodes."""
    derive(SCRIPT.replace("LINES", ""), path="scripts/convert.py")

    counted = calls(lambda: derive(script(1), path="scripts/convert.py"))

    assert counted["parse"] == 1
    assert counted["_walked"] == 1


def test_the_usage_text_is_found_without_the_tokens_of_the_code() -> None:
    """A long script has thousands of tokens, and few comments and texts."""
    short = calls(lambda: derive(script(1), path="scripts/convert.py"))
    long = calls(lambda: derive(script(300), path="scripts/convert.py"))

    assert short["_tokens"] == long["_tokens"] == 0
