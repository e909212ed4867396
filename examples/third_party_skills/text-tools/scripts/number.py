"""Write the lines of a text file with their numbers."""

import argparse
from pathlib import Path

if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description="Print a text file with its lines numbered."
    )
    parser.add_argument("file", type=Path, help="the text file")
    parser.add_argument(
        "--start", type=int, default=1, help="the number of the first line"
    )
    arguments = parser.parse_args()
    for number, line in enumerate(
        arguments.file.read_text(encoding="utf-8").splitlines(), start=arguments.start
    ):
        print(f"{number:4} {line}")
