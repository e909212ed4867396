import sys

settings = {}
for word in sys.argv[1:]:
    if word.startswith("--"):
        key, _, value = word[2:].partition("=")
        settings[key] = value
print(settings)
