import argparse

parser = argparse.ArgumentParser()
commands = parser.add_subparsers(title="commands", dest="command", metavar="COMMAND", help="what to do", required=True)
open_ = commands.add_parser("open", aliases=["o"], help="Open a gate")
open_.add_argument("gate")
shut = commands.add_parser("shut", aliases=("s", "close"), help="Shut it")
shut.add_argument("--lock", action="store_true")
parser.parse_args()
