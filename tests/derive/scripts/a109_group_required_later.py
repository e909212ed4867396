import argparse
p = argparse.ArgumentParser()
p.add_argument("--x").completer = None
g = p.add_mutually_exclusive_group()
g.add_argument("--a", action="store_true")
g.add_argument("--b", action="store_true")
g.required = True
p.parse_args()
