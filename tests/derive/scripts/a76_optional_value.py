import argparse

parser = argparse.ArgumentParser()
parser.add_argument("target", nargs="?", default="all", choices=["all", "none"])
parser.add_argument("--log", nargs="?", const="run.log", default=None, help="Write a log, to run.log if no file is named")
parser.add_argument("--level", nargs="?", type=int, const=1, default=0)
parser.add_argument("--flag", nargs="?", type=int, const=True, default=False)
parser.parse_args()
