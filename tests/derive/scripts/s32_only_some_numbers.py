import sys

if len(sys.argv) == 2:
    print(sys.argv[1])
elif len(sys.argv) == 4:
    print(sys.argv[1], sys.argv[2], sys.argv[3])
else:
    sys.exit("one word, or three")
