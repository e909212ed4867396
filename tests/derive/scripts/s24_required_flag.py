"""Start a notebook.

Usage: s24_required_flag.py <title> --shelf <directory>
"""
import sys

if len(sys.argv) < 4 or sys.argv[2] != "--shelf":
    print(__doc__)
    sys.exit(1)
title = sys.argv[1]
shelf = sys.argv[3]
print(title, "on", shelf)
