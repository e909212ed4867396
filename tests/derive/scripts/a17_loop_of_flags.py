#!/usr/bin/env python3
import argparse


def main():
    parser = argparse.ArgumentParser()
    for name in ("width", "height"):
        parser.add_argument(f"--{name}", type=int, default=100, help=f"The {name} in pixels")
    for flag, text in {"--strict": "Refuse", "--lax": "Allow"}.items():
        parser.add_argument(flag, action="store_true", help=text)
    options = dict(type=float, default=1.0)
    parser.add_argument("--scale", **options)
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
