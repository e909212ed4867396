import sys


def draw(shape, colour="red", size="3"):
    print(shape, colour, int(size))


draw(*sys.argv[1:])
