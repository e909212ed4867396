"""Dry herbs. Flags may be anywhere."""
import sys

flags = [word for word in sys.argv[1:] if word.startswith("--")]
herbs = [word for word in sys.argv[1:] if not word.startswith("--")]
if not herbs:
    print("usage: s19_filtered.py herb... [--slow] [--hang]")
    sys.exit(1)
for herb in herbs:
    print(herb, "--slow" in flags, "--hang" in flags)
