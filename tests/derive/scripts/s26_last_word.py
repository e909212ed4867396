import sys

if len(sys.argv) < 3:
    sys.exit("usage: s26_last_word.py source... target")
print(sys.argv[1:-1], "to", sys.argv[-1])
