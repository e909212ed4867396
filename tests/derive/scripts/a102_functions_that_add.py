import argparse, functools
def opt(*names, **kw):
    return lambda p: p.add_argument(*names, **kw)
OPTS = [opt("--a", type=int), opt("-b", action="store_true")]
p = argparse.ArgumentParser()
for o in OPTS:
    o(p)
list(map(lambda n: p.add_argument("--" + n), ["c", "d"]))
[p.add_argument("--" + n, type=float) for n in ("e", "f")]
p.parse_args()
