import argparse

TABLE = {"one": 1, "two": 2}
EXTRA = {"three"}

parser = argparse.ArgumentParser()
parser.add_argument("--letter", choices="abc")
parser.add_argument("--row", type=int, choices=range(1, 6), default=1)
parser.add_argument("--even", type=int, choices=range(0, 10, 2))
parser.add_argument("--name", choices=sorted(TABLE))
parser.add_argument("--all", choices=sorted(set(TABLE) | EXTRA))
parser.add_argument("--rate", type=float, choices=[0.5, 1.0])
parser.add_argument("--value", type=int, choices=list(TABLE.values()))
parser.add_argument("--both", choices=[f"{a}-{b}" for a in TABLE for b in "xy"])
parser.parse_args()
