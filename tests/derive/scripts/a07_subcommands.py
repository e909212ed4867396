#!/usr/bin/env python3
import argparse


def add(args):
    print("add", args.name)


def main():
    parser = argparse.ArgumentParser(description="Keep a list")
    parser.add_argument("--db", default="list.db")
    sub = parser.add_subparsers(dest="command", required=True, help="What to do")
    p_add = sub.add_parser("add", help="Add an item", aliases=["a"])
    p_add.add_argument("name")
    p_add.add_argument("--priority", type=int, choices=[1, 2, 3], default=2)
    p_add.set_defaults(func=add)
    p_list = sub.add_parser("list", help="List items")
    p_list.add_argument("--all", action="store_true")
    p_rm = sub.add_parser("remove")
    p_rm.add_argument("ids", type=int, nargs="+")
    args = parser.parse_args()
    print(args)


if __name__ == "__main__":
    main()
