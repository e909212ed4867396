import getopt
import sys

colour, quiet = "grey", False
options, herbs = getopt.getopt(sys.argv[1:], "c:q", ["colour=", "quiet"])
for flag, value in options:
    if flag in ("-c", "--colour"):
        colour = value
    elif flag in ("-q", "--quiet"):
        quiet = True
if not herbs:
    sys.exit("usage: s38_getopt.py HERB...")
print(colour, quiet, *herbs)
