import argparse

REPEATED = dict(action="append", metavar="TEXT")
NUMBER = {"type": int, "default": 1}

parser = argparse.ArgumentParser()
parser.add_argument("--note", **REPEATED, help="A note; may be given again")
parser.add_argument("--times", **NUMBER)
parser.add_argument("--least", **{**NUMBER, "default": 0})
parser.add_argument("--most", **(NUMBER | {"default": 9, "help": "At most"}))
parser.add_argument(*("-d", "--dry"), **{"action": "store_true"})
parser.parse_args()
