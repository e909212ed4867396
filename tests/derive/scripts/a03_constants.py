#!/usr/bin/env python3
import argparse
FORMATS = ["json", "csv", "md"]
DEFAULT_FORMAT = FORMATS[0]
LEVELS = {"debug": 10, "info": 20}
MODELS = {"small": {"dim": 1}, "large": {"dim": 2}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--format", choices=FORMATS, default=DEFAULT_FORMAT, help=f"One of {', '.join(FORMATS)}")
    parser.add_argument("--level", choices=sorted(LEVELS), default="info")
    parser.add_argument("--size", type=int, choices=range(1, 6), default=3)
    parser.add_argument("--model", choices=list(MODELS.keys()), required=True)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
