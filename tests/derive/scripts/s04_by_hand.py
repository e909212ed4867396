import sys

for word in sys.argv[1:]:
    key, _, value = word.partition("=")
    print(key, value)
