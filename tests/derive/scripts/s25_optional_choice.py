import sys

MODES = ("fast", "slow")
mode = sys.argv[1] if len(sys.argv) > 1 else "fast"
if mode not in MODES:
    raise SystemExit(f"unknown mode: {mode}")
print(mode)
