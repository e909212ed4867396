#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-input", required=True)
    parser.add_argument("-scale", type=float, default=1.0)
    parser.add_argument("-quiet", action="store_true")
    parser.add_argument("-n", type=int)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
