import sys


def main(argv):
    if len(argv) != 3:
        print("usage: s08_unpacked.py <left> <right>")
        return 1
    left, right = argv[1], argv[2]
    print(left, right)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
