"""Print one sentence as JSON."""

import json
import sys

json.dump({"text": "This is a simple text response for testing."}, sys.stdout)
