"""Count what a text file holds."""

import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser(
    description="Count the lines, words or characters of a text file."
)
parser.add_argument("file", type=Path, help="the text file")
parser.add_argument(
    "--unit",
    choices=["lines", "words", "characters"],
    default="words",
    help="what to count",
)
parser.add_argument(
    "--at-least", type=int, default=1, help="leave out words shorter than this"
)
arguments = parser.parse_args()

text = arguments.file.read_text(encoding="utf-8")
words = [word for word in text.split() if len(word) >= arguments.at_least]
counts = {"lines": len(text.splitlines()), "words": len(words), "characters": len(text)}
print(json.dumps({"unit": arguments.unit, "count": counts[arguments.unit]}))
