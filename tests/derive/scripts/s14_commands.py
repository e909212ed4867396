"""Keep a list of birds."""
import sys


def usage():
    print("Usage: s14_commands.py add BIRD [COUNT] | list | drop BIRD...")
    sys.exit(1)


def add(bird, count=1):
    print("add", bird, count)


def main():
    args = sys.argv[1:]
    if not args:
        usage()
    command = args[0]
    if command == "add" and len(args) >= 2:
        add(args[1], int(args[2]) if len(args) > 2 else 1)
    elif command == "list":
        print("list")
    elif command == "drop" and len(args) > 1:
        for bird in args[1:]:
            print("drop", bird)
    else:
        usage()


main()
