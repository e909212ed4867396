import argparse

parser = argparse.ArgumentParser(description="Switch a lamp.")
parser.register("type", "bool", lambda text: text.lower() == "true")
parser.register("type", "percent", float)
parser.add_argument("--on", type="bool", default=False, help="Whether it shines")
parser.add_argument("--dim", type="percent", default=0.5)
parser.add_argument("hall")
parser.parse_args()
