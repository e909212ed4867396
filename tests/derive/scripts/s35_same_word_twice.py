import sys

sources = sys.argv[1:]


def main():
    for source in sources:
        print(source)


main()
