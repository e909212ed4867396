import subprocess
import sys

subprocess.run(["git", "log", *sys.argv[1:]], check=True)
