import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--size", nargs=2, type=int, metavar=("WIDTH", "HEIGHT"), default=(640, 480))
parser.add_argument("--point", nargs=3, type=float, action="append", metavar=tuple("XYZ"))
parser.add_argument("--set", nargs=2, action="append", default=[], dest="settings")
parser.add_argument("corner", nargs=2, type=float)
parser.parse_args()
