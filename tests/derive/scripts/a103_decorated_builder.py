import argparse
def decorate(f):
    def w(*a, **k):
        p = f(*a, **k)
        p.add_argument("--extra")
        return p
    return w
@decorate
def build(name="x", *rest, kind=int):
    p = argparse.ArgumentParser(name)
    p.add_argument("--v", type=kind)
    return p
build(kind=float).parse_args()
