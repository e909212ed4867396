import argparse


class Tone:
    BRIGHT = "bright"
    DARK = "dark"


class Size:
    SMALL, LARGE = 1, 10
    ALL = (SMALL, LARGE)


parser = argparse.ArgumentParser()
parser.add_argument("--tone", choices=[name.lower() for name in dir(Tone) if name.isupper()])
parser.add_argument("--size", type=int, choices=Size.ALL, default=Size.LARGE)
parser.parse_args()
