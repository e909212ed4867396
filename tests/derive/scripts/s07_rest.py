import sys

if len(sys.argv) < 2:
    sys.exit("Usage: s07_rest.py <file>...")
for path in sys.argv[1:]:
    print(path)
