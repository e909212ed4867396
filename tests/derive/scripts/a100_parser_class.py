import argparse
class P(argparse.ArgumentParser):
    def __init__(self, *a, **k):
        super().__init__(*a, **k)
        self.add_argument("--log", default="x")
p = argparse.ArgumentParser()
s = p.add_subparsers(dest="c", required=True, parser_class=P)
a = s.add_parser("a")
a.add_argument("--y")
p.parse_args()
