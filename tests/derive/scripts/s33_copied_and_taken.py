import sys


def main(args):
    loud = False
    if "--loud" in args:
        args.remove("--loud")
        loud = True
    if not args:
        print("usage: s33_copied_and_taken.py GREETING [NAME]")
        return 1
    greeting = args.pop(0)
    name = args.pop(0) if args else "world"
    print(greeting, name, loud)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
