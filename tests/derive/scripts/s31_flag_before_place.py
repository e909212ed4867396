import sys

fast = "--fast" in sys.argv
place = sys.argv[1] if len(sys.argv) > 1 else "here"
print(place, fast)
