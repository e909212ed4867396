#!/usr/bin/env python3
import argparse

common = argparse.ArgumentParser(add_help=False)
common.add_argument("--config", default="config.yaml", help="Configuration")
common.add_argument("--debug", action="store_true")

parser = argparse.ArgumentParser(parents=[common])
sub = parser.add_subparsers(dest="cmd", required=True)
train = sub.add_parser("train", parents=[common])
train.add_argument("--epochs", type=int, default=3)
evaluate = sub.add_parser("eval", parents=[common])
evaluate.add_argument("checkpoint")
parser.parse_args()
