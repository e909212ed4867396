import argparse


def words_of(text):
    words = []
    for line in text.splitlines():
        words += [word.strip() for word in line.split(",")]
    return words


parser = argparse.ArgumentParser(description="Pack a bag")
parser.add_argument("--put", action="extend", type=lambda text: text.split(","))
parser.add_argument("--take", action="extend", type=words_of)
parser.add_argument("--also", action="extend", nargs="+", default=["map"])
parser.parse_args()
