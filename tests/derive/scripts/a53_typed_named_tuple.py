import argparse
from typing import NamedTuple


class Unit(NamedTuple):
    name: str
    factor: float = 1.0


UNITS = (Unit("metre"), Unit("inch", 0.0254), Unit("foot", 0.3048))


def main(argv=None):
    parser = argparse.ArgumentParser(description="Convert a length")
    parser.add_argument("length", type=float)
    parser.add_argument("--from", dest="source", choices=[unit.name for unit in UNITS], default=UNITS[0].name)
    parser.add_argument("--to", dest="target", choices=tuple(unit.name for unit in UNITS), default=UNITS[-1].name)
    return parser.parse_args(argv)


if __name__ == "__main__":
    main()
