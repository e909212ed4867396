import argparse
import ast
import datetime
import json
import uuid
from decimal import Decimal

parser = argparse.ArgumentParser()
parser.add_argument("--when", type=datetime.date.fromisoformat)
parser.add_argument("--extra", type=json.loads, default={})
parser.add_argument("--value", type=ast.literal_eval)
parser.add_argument("--id", type=uuid.UUID)
parser.add_argument("--price", type=Decimal)
parser.add_argument("--hex", type=bytes.fromhex)
parser.add_argument("--lower", type=str.lower, choices=["yes", "no"])
parser.parse_args()
