import argparse

parser = argparse.ArgumentParser(fromfile_prefix_chars="+", argument_default=argparse.SUPPRESS)
parser.add_argument("--foo")
parser.add_argument("command")
parser.add_argument("rest", nargs="*", type=int)
print(parser.parse_intermixed_args())
