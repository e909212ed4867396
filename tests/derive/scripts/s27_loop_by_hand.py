import sys

name, loud = None, False
index = 1
while index < len(sys.argv):
    if sys.argv[index] == "--name":
        name = sys.argv[index + 1]
        index += 2
    elif sys.argv[index] == "--loud":
        loud = True
        index += 1
    else:
        sys.exit(f"unknown option: {sys.argv[index]}")
print(name, loud)
