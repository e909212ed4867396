import argparse

parser = argparse.ArgumentParser(description="Open a safe")
parser.add_argument("--key")
parser.add_argument("--gate", type=int)
for action in parser._actions:
    if action.dest == "key":
        action.required = True
parser.parse_args()
