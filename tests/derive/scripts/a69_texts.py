import argparse

NAME, YEAR = "almanac", 1900
WIDE = 100
FORMATS = ("text", "table")

parser = argparse.ArgumentParser(
    prog=NAME,
    usage="%(prog)s [options] YEAR",
    description="Print an %s of %d pages." % (NAME, WIDE),
    epilog="""More is said
    in the library.""",
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
)
parser.add_argument("year", type=int, help=f"a year after {YEAR:d}")
parser.add_argument("--format", choices=FORMATS, help="one of {}".format(", ".join(FORMATS)))
parser.add_argument("--" + NAME + "-title", help="the title, "
                    "100%% your own")
parser.add_argument("--width", type=int, default=WIDE // 2, help="columns (default %(default)d)")
parser.parse_args()
