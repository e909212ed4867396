import sys

if len(sys.argv) < 4:
    raise SystemExit("three words, please")
width, height = sys.argv[1:3]
rate = float(sys.argv[3])
print(int(width) * int(height), rate)
