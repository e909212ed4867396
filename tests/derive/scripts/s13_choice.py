"""Turn a tap."""
import sys

if len(sys.argv) < 2:
    sys.exit("Usage: s13_choice.py open|close [turns]")
action = sys.argv[1].lower()
turns = int(sys.argv[2]) if len(sys.argv) > 2 else 1
if action == "open":
    print("+" * turns)
elif action in ("close", "shut"):
    print("-" * turns)
else:
    print(f"Unknown action: {action}", file=sys.stderr)
    sys.exit(2)
