import argparse

parser = argparse.ArgumentParser(description="Feed the animals")
parser.add_argument("--food", nargs="*", type=int, help="How much on which day")
parser.add_argument("--skip", nargs="+", choices=["cat", "dog"], default=[])
parser.add_argument("--slow", action="store_true")
parser.add_argument("-v", action="count", default=0)
parser.add_argument("animal")
parser.add_argument("more", nargs="*")
parser.parse_args()
