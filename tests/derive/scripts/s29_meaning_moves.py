import sys

if len(sys.argv) == 2:
    source, target = "-", sys.argv[1]
else:
    source, target = sys.argv[1], sys.argv[2]
print(source, target)
