import argparse
p = argparse.ArgumentParser(argument_default=argparse.SUPPRESS)
s = p.add_subparsers()
for name, aliases in {"one": ["o"], "two": []}.items():
    q = s.add_parser(name, aliases=aliases)
    r = q.add_subparsers(dest="inner", required=True)
    for inner in ("x", "y"):
        t = r.add_parser(inner)
        t.add_argument("--" + name + inner, action="append", type=int)
p.parse_args()
