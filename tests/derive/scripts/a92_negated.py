import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--colour", dest="colour", action="store_true", default=True)
parser.add_argument("--no-colour", dest="colour", action="store_false")
parser.add_argument("--skip-check", action="store_false", dest="check")
parser.add_argument("--fold", action=argparse.BooleanOptionalAction, default=False, help="Fold the paper")
parser.set_defaults(check=True)
parser.parse_args()
