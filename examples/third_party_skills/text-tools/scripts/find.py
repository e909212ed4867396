"""Find the lines of a text file that hold a word."""

import argparse
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Print the lines of a text file that hold a word."
    )
    parser.add_argument("word", help="the word to look for")
    parser.add_argument("file", type=Path, help="the text file")
    parser.add_argument(
        "--ignore-case",
        action="store_true",
        help="take capitals and small letters as the same",
    )
    parser.add_argument(
        "--limit", type=int, default=10, help="print at most so many lines"
    )
    arguments = parser.parse_args()
    found = 0
    for number, line in enumerate(
        arguments.file.read_text(encoding="utf-8").splitlines(), start=1
    ):
        inside, word = (
            (line.lower(), arguments.word.lower())
            if arguments.ignore_case
            else (line, arguments.word)
        )
        if word in inside and found < arguments.limit:
            found += 1
            print(f"{number}: {line}")


if __name__ == "__main__":
    main()
