"""Parse at module level, as quick scripts do."""
import argparse
import json
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="+", type=Path, help="Files to merge")
parser.add_argument("--indent", type=int, choices=[0, 2, 4], default=2)
parser.add_argument("--sort-keys", action="store_true")
args = parser.parse_args()
print(json.dumps([str(f) for f in args.files], indent=args.indent, sort_keys=args.sort_keys))
