import argparse

parser = argparse.ArgumentParser(description="Ring the bells")
parser.add_argument("bells", nargs="+")
parser.add_argument("--times", nargs="*", type=int, default=[])
parser.add_argument("--loud", action="store_true")
parser.add_argument("--say", nargs=argparse.REMAINDER, help="Everything that follows is said")
parser.parse_args()
