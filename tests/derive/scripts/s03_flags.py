"""Check files.

Usage: s03_flags.py <file> [--fix] [--level LEVEL]
"""
import sys

path = sys.argv[1]
fix = "--fix" in sys.argv
level = "low"
if "--level" in sys.argv:
    level = sys.argv[sys.argv.index("--level") + 1]
print(path, fix, level)
