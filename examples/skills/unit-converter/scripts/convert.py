# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""Convert a measure: arguments as JSON on stdin, the result as JSON on stdout."""

import json
import sys

METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}
KILOGRAMS = {"kg": 1.0, "lb": 0.45359237}
KELVIN = {"K": (1.0, 0.0), "C": (1.0, 273.15), "F": (5 / 9, 459.67 * 5 / 9)}


def convert(value: float, source: str, target: str) -> float:
    for factors in (METRES, KILOGRAMS):
        if source in factors and target in factors:
            return value * factors[source] / factors[target]
    if source in KELVIN and target in KELVIN:
        kelvin = value * KELVIN[source][0] + KELVIN[source][1]
        if kelvin < 0:
            raise ValueError(f"{value} {source} is below absolute zero")
        return (kelvin - KELVIN[target][1]) / KELVIN[target][0]
    raise ValueError(f"{source} and {target} do not measure the same thing")


def main() -> None:
    arguments = json.load(sys.stdin)
    try:
        value = convert(arguments["value"], arguments["from"], arguments["to"])
    except ValueError as error:
        fault = {"code": "INVALID_INPUT", "message": str(error), "recoverable": True}
        json.dump({"status": "failed", "errors": [fault]}, sys.stdout)
        sys.exit(1)
    json.dump(
        {"value": round(value, arguments["digits"]), "unit": arguments["to"]},
        sys.stdout,
    )


if __name__ == "__main__":
    main()
