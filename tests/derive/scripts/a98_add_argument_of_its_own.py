import argparse
class P(argparse.ArgumentParser):
    def add_argument(self, *a, **k):
        k.setdefault("default", None)
        k["help"] = (k.get("help") or "") + "!"
        return super().add_argument(*a, **k)
p = P()
p.add_argument("--x", type=int, required=True)
p.add_argument("y")
p.parse_args()
