import sys

words = sys.argv[1:]
bird = nest = None
loud = False
while words:
    word = words.pop(0)
    if word == "--loud":
        loud = True
    elif word in ("--nest", "-n"):
        nest = words.pop(0)
    elif word.startswith("-"):
        sys.exit(f"unknown option: {word}")
    else:
        bird = word
if bird is None:
    sys.exit("usage: s40_taken_out.py BIRD [--nest NEST] [--loud]")
print(bird, nest, loud)
