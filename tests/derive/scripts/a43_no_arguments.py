#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser(description="Takes nothing at all")
    parser.parse_args()
    print("done")


if __name__ == "__main__":
    main()
