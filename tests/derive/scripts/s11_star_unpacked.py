import sys

_, target, *sources = sys.argv
print(target, sources)
