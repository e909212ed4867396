"""Print the name that was given."""

import json
import sys

arguments = json.load(sys.stdin)
json.dump({"name": arguments.get("name")}, sys.stdout)
