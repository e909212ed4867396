#!/usr/bin/env python3
import argparse
import os
from datetime import date
from pathlib import Path


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--key", default=os.environ.get("SCRIPT_KEY"))
    parser.add_argument("--home", default=os.path.expanduser("~/x"))
    parser.add_argument("--out", default=str(Path.cwd() / "out"))
    parser.add_argument("--day", default=date.today().isoformat())
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
