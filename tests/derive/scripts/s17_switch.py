"""Sort the socks."""
import sys

drawer = sys.argv[1]
dark = "--dark" in sys.argv
quiet = "-q" in sys.argv[2:]
print(drawer, dark, quiet)
