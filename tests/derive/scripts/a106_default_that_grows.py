import argparse
def f(x, acc=[]):
    acc.append(x)
    return acc
f("a")
p = argparse.ArgumentParser()
p.add_argument("--x", choices=f("b"))
p.parse_args()
