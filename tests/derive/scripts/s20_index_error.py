import sys

try:
    name = sys.argv[1]
    size = int(sys.argv[2])
except (IndexError, ValueError):
    print("Usage: s20_index_error.py NAME SIZE")
    sys.exit(1)
try:
    colour = sys.argv[3]
except IndexError:
    colour = "grey"
print(name, size, colour)
