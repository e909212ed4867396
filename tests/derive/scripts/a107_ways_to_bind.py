import argparse
p = argparse.ArgumentParser()
with open(__file__) as f:
    p.add_argument("--x")
if (n := 3) > 2:
    p.add_argument("--y", type=int, default=n)
else:
    p.add_argument("--z")
assert p
try:
    p.add_argument("--t", choices=[str(i) for i in range(3)])
finally:
    p.add_argument("--u")
a, *b = ["--k", "--l"]
p.add_argument(a); p.add_argument(*b)
p.parse_args()
