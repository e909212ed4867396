#!/usr/bin/env python3
import argparse

parser = argparse.ArgumentParser("grouped")
io_group = parser.add_argument_group("input and output", "Where things come from")
io_group.add_argument("--input", "-i", required=True, metavar="FILE")
io_group.add_argument("--output", "-o", metavar="FILE")
tuning = parser.add_argument_group(title="tuning")
tuning.add_argument("--rate", type=float, default=0.5, help="From 0 to 1 (default: %(default)s), 5%% is usual")
tuning.add_argument("--steps", type=int, default=100)
args = parser.parse_args()
