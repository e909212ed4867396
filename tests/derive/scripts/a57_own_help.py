import argparse


class Help(argparse._HelpAction):
    def __call__(self, parser, namespace, values, option_string=None):
        print("Ask the librarian.")
        parser.exit()


parser = argparse.ArgumentParser(add_help=False, prog="shelf")
parser.add_argument("-?", "--help", action=Help, help="say who helps")
parser.add_argument("-V", "--version", action="version", version="%(prog)s 1")
parser.add_argument("shelf", type=int)
parser.parse_args()
