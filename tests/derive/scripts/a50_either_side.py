import argparse

try:
    import colour_of_the_day as colours
except ImportError:
    colours = None

parser = argparse.ArgumentParser()
parser.add_argument("text")
if colours:
    parser.add_argument("--paint", metavar="NAME", help="Any colour of the day")
else:
    parser.add_argument("--paint", metavar="COLOUR", help="red, green or blue")
parser.parse_args()
