import sys

if len(sys.argv) != 3:
    print(f"Usage: {sys.argv[0]} <first> <second>", file=sys.stderr)
    sys.exit(2)
first = float(sys.argv[1])
second = sys.argv[2]
print(first, second)
