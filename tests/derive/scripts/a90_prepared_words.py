import argparse
import sys


def main():
    """Draw a card."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("suit", choices=("hearts", "spades"), help="which one")
    parser.add_argument("--seed", type=int)
    if len(sys.argv) == 1:
        parser.print_help()
        sys.exit(1)
    try:
        return parser.parse_args(sys.argv[1:])
    except SystemExit:
        raise


if __name__ == "__main__":
    main()
