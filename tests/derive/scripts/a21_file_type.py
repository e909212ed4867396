#!/usr/bin/env python3
import argparse
import os
import pathlib


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("infile", type=argparse.FileType("r"))
    parser.add_argument("--out", type=argparse.FileType("w"), default="-")
    parser.add_argument("--path", type=pathlib.Path, default=pathlib.Path("data") / "in.txt")
    parser.add_argument("--abs", type=os.path.abspath)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
