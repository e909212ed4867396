import argparse

from shared import DAYS, add_output_options
from shared.options import Form

parser = argparse.ArgumentParser(description="List what happens.")
parser.add_argument("day", choices=DAYS)
add_output_options(parser, default=Form.LINES)
parser.parse_args()
