import argparse
from collections import namedtuple

Spec = namedtuple("Spec", ["flag", "kind", "text"])
SPECS = [
    Spec("--depth", int, "How deep to look"),
    Spec("--share", float, "Which part to take"),
    Spec(flag="--name", kind=str, text="What to look for"),
]


def build():
    parser = argparse.ArgumentParser()
    for flag, kind, text in SPECS:
        parser.add_argument(flag, type=kind, help=text)
    parser.add_argument("--only", choices=[spec.flag[2:] for spec in SPECS])
    return parser


if __name__ == "__main__":
    print(build().parse_args())
