import argparse


def common():
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--dry-run", action="store_true")
    return parser


def main():
    shared = common()
    where = argparse.ArgumentParser(add_help=False, parents=[shared])
    where.add_argument("--root", default=".")
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    add = commands.add_parser("add", parents=[shared, ])
    add.add_argument("item")
    remove = commands.add_parser("remove", parents=[where])
    remove.add_argument("item", nargs="+")
    parser.parse_args()


main()
