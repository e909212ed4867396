"""Count the words of a text."""
import json
import sys


def main(arguments: dict) -> dict:
    text = arguments["text"]
    limit = int(arguments.get("limit", 10))
    if "language" in arguments:
        print(arguments["language"], file=sys.stderr)
    return {"words": text.split()[:limit]}


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
