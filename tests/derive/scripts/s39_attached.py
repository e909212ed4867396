import sys

options = {}
for word in sys.argv[1:]:
    if word.startswith("--") and "=" in word:
        key, value = word[2:].split("=", 1)
        options[key] = value
if "tree" not in options:
    sys.exit("--tree=NAME is required")
print(options["tree"], options.get("season", "spring"))
