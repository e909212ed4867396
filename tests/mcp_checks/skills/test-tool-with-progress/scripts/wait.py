"""Take four seconds: at one report a second, three at least arrive before the answer."""

import json
import sys
import time

time.sleep(4)
json.dump({"waited": 4}, sys.stdout)
