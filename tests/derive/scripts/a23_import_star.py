from argparse import *

parser = ArgumentParser(formatter_class=ArgumentDefaultsHelpFormatter)
parser.add_argument("x", type=float)
parser.add_argument("y", type=float)
parser.add_argument("--op", choices=("add", "mul"), default="add")
print(parser.parse_args())
