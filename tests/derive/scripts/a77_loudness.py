import argparse

parser = argparse.ArgumentParser()
group = parser.add_mutually_exclusive_group()
group.add_argument("-v", "--verbose", dest="level", action="store_const", const=2)
group.add_argument("-q", "--quiet", dest="level", action="store_const", const=0)
group.add_argument("--level", dest="level", type=int, default=1)
parser.add_argument("-x", action="count", default=0)
parser.add_argument("--step", dest="steps", action="append_const", const="step")
parser.parse_args()
