import argparse
fs = []
for i, n in enumerate(["a", "b"]):
    fs.append(lambda p, n=n, i=i: p.add_argument("--" + n, type=int, default=i))
p = argparse.ArgumentParser()
for f in fs:
    f(p)
p.parse_args()
