import argparse
import os

parser = argparse.ArgumentParser(description="Send a letter")
parser.add_argument("--from", dest="sender", default=os.environ.get("SENDER"))
parser.add_argument("--to", default=os.getenv("RECEIVER", "everyone"))
parser.add_argument("--stamps", type=int, default=int(os.environ.get("STAMPS", 1)))
parser.add_argument("--folder", default=os.path.join(os.getcwd(), "letters"))
parser.parse_args()
