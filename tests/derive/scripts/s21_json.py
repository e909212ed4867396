import json
import sys

order = json.loads(sys.argv[1])
print(sorted(order.items()))
