import sys

if len(sys.argv) < 2:
    print(f"Usage: {sys.argv[0]} <question>")
    sys.exit(1)
question = " ".join(sys.argv[1:])
print(question)
