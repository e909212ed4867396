import json
import sys

data = json.loads(sys.stdin.read())
print(json.dumps({"sum": sum(data["numbers"]), "scale": data.get("scale", 1.5)}))
