import argparse


def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{value} is not above zero")
    return value


def share(text):
    try:
        value = float(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("not a number") from error
    if value < 0.0 or value > 1.0:
        raise argparse.ArgumentTypeError("not from 0 to 1")
    return value


parser = argparse.ArgumentParser()
parser.add_argument("--count", type=positive, default=3)
parser.add_argument("--share", type=share, default=0.25)
parser.add_argument("--address", type=lambda text: int(text, 0), default=0)
parser.add_argument("--pairs", type=lambda text: text.split(":"))
parser.parse_args()
