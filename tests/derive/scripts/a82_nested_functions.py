import argparse
from contextlib import suppress


def build():
    parser = argparse.ArgumentParser()

    def flag(name, text, **more):
        parser.add_argument(f"--{name}", action="store_true", help=text, **more)

    def value(name, kind=str, default=None):
        parser.add_argument("--" + name.replace("_", "-"), type=kind, default=default)

    flag("fast", "Do not wait")
    flag("safe", "Ask first", default=False)
    value("max_speed", int, 30)
    value("driver")
    with suppress(ImportError):
        value("fuel", float)
    return parser


def main():
    parser = build()
    options = parser.parse_args()
    if options.fast and options.safe:
        parser.error("not both")


if __name__ == "__main__":
    main()
