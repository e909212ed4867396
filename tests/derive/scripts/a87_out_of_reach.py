import argparse

parser = argparse.ArgumentParser()
parser.add_argument("files", nargs="*", metavar="FILE")
parser.add_argument("ignored", nargs="*", metavar="REST")
parser.add_argument("--one", nargs=1, default=["x"])
parser.parse_args()
