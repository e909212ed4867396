"""What accepting a valid call costs on real contracts and by size, beside the engine
and pydantic.

    python benchmarks/accept_shapes.py [--calls CALLS.jsonl] [--rounds 7]

Three kinds of calls, each a table: a usual call of each contract in ``skills/``; the
valid calls of CALLS, a file of JSON Lines with ``schema``, ``value`` and ``category``;
and rows of a table, from 1 KB to 9 MB. A ratio is that of the fastest rounds, which
take turns in one process, in CPU time; printed are the least, the median and the
greatest of a set. The pydantic model of a schema is made from its properties, with
their types, enums and bounds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs
from pydantic import ConfigDict, Field, TypeAdapter, create_model

from skillruntime.contract import Contract

ROOT = Path(__file__).parents[1]
CALLS: dict[str, dict[str, Any]] = {
    "code-review/contracts/changed-lines": {"path": "change.diff", "only": ["src"]},
    "daily-news-digest/contract": {
        "topics": ["AI regulation", "quantum computing"],
        "max_articles_per_topic": 3,
    },
    "data-analysis/contracts/query": {
        "path": "sales.csv",
        "where": [{"column": "region", "op": "=", "value": "North"}],
        "group": ["product"],
        "values": ["sum of amount"],
    },
    "data-analysis/contracts/summary": {"path": "sales.csv", "top_values": 3},
    "pdf-processing/contracts/extract": {"path": "report.pdf", "pages": "1-3"},
    "pdf-processing/contracts/fill-form": {
        "path": "form.pdf",
        "fields": {"name": "Ada Lovelace", "agree": True, "country": "DE"},
    },
    "pdf-processing/contracts/merge": {"paths": ["cover.pdf", "report.pdf"]},
    "pdf-processing/contracts/render": {"path": "report.pdf", "dpi": 200},
}
ROWS = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "count": {"type": "integer"},
        "rows": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["id"],
                "additionalProperties": False,
                "properties": {
                    "id": {"type": "integer"},
                    "name": {"type": "string"},
                    "score": {"type": "number"},
                    "tags": {"type": "array", "items": {"type": "string"}},
                },
            },
        },
    },
}
SIZES = {"1 KB": 1_000, "10 KB": 10_000, "1 MB": 1_000_000, "9 MB": 9_000_000}
TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def main() -> None:
    """Measure each kind of calls, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    print_shapes("contracts of skills/", calls_of_skills(), options.rounds)
    if options.calls is not None:
        print_shapes(options.calls.name, calls_of_file(options.calls), options.rounds)
    print("\n| rows | mapping / is_valid | text / (json.loads + is_valid) | ", end="")
    print("trailing comma / json.loads |\n|---|---|---|---|")
    for name, size in SIZES.items():
        print(f"| {name} | {' | '.join(ratios_of_size(size, options.rounds))} |")


def calls_of_skills() -> Iterable[tuple[Contract, Any]]:
    """Yield each contract of ``skills/`` with its usual call."""
    for name, arguments in CALLS.items():
        document = json.loads((ROOT / "skills" / f"{name}.json").read_text("utf-8"))
        yield Contract.from_dict(document, name=Path(name).name), arguments


def calls_of_file(path: Path) -> Iterable[tuple[Contract, Any]]:
    """Yield the valid calls of *path*, each with the contract of its schema."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            call = json.loads(line)
            if call["category"] == "valid" and isinstance(call.get("value"), dict):
                yield Contract.from_schema(call["schema"]), call["value"]


def print_shapes(name: str, calls: Iterable[tuple[Contract, Any]], rounds: int) -> None:
    """Print the ratios of all *calls*: the least, the median and the greatest."""
    table: dict[str, list[float]] = {}
    for contract, arguments in calls:
        for what, ratio in ratios_of_call(contract, arguments, rounds).items():
            table.setdefault(what, []).append(ratio)
    count = max(map(len, table.values()))
    print(f"\n| {name}, {count} calls | least | median | greatest |\n|---|---|---|---|")
    for what, ratios in table.items():
        middle = statistics.median(ratios)
        print(f"| {what} | {min(ratios):.2f} | {middle:.2f} | {max(ratios):.2f} |")


def ratios_of_call(
    contract: Contract, arguments: dict[str, Any], rounds: int
) -> dict[str, float]:
    """Return what accepting *arguments* costs, as ratios."""
    text = json.dumps(arguments)
    schema = contract.to_dict()["input"]
    engine = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    adapter = TypeAdapter(model_of(schema))
    contenders = {
        "mapping": partial(contract.accept, arguments),
        "text": partial(contract.accept, text),
        "engine": partial(engine.is_valid, arguments),
        "loads": partial(json.loads, text),
        "pydantic": partial(adapter.validate_python, arguments),
        "pydantic text": partial(adapter.validate_json, text),
    }
    seconds = fastest(contenders, rounds, 100)
    return {
        "mapping / is_valid": seconds["mapping"] / seconds["engine"],
        "mapping / TypeAdapter": seconds["mapping"] / seconds["pydantic"],
        "text / (json.loads + is_valid)": seconds["text"]
        / (seconds["loads"] + seconds["engine"]),
        "text / TypeAdapter": seconds["text"] / seconds["pydantic text"],
    }


def ratios_of_size(size: int, rounds: int) -> list[str]:
    """Return the ratios of a call with rows of *size* characters, as texts."""
    contract = Contract.from_schema(ROWS)
    row = {"id": 1, "name": "a row of the table", "score": 0.5, "tags": ["a", "b"]}
    count = max(1, size // len(json.dumps(row)))
    text = json.dumps({"count": 3, "rows": [row] * count})
    arguments = json.loads(text)
    malformed = text[:-1] + ",}"
    engine = jsonschema_rs.Draft202012Validator(ROWS)
    contenders = {
        "mapping": partial(contract.accept, arguments),
        "text": partial(contract.accept, text),
        "malformed": partial(contract.accept, malformed),
        "engine": partial(engine.is_valid, arguments),
        "loads": partial(json.loads, text),
    }
    seconds = fastest(contenders, rounds, max(1, 200_000 // size))
    ratios = [
        seconds["mapping"] / seconds["engine"],
        seconds["text"] / (seconds["loads"] + seconds["engine"]),
        seconds["malformed"] / seconds["loads"],
    ]
    return [f"{ratio:.2f}" for ratio in ratios]


def fastest(
    contenders: dict[str, Callable[[], Any]], rounds: int, calls: int
) -> dict[str, float]:
    """Return the CPU seconds of *calls* calls in the fastest round of each."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, call in contenders.items():
            started = time.process_time()
            for _ in range(calls):
                call()
            seconds = time.process_time() - started
            best[name] = min(seconds, best.get(name, seconds))
    return best


def model_of(schema: dict[str, Any]) -> Any:
    """Return a pydantic model of the properties of *schema*."""
    required = schema.get("required", [])
    fields: dict[str, Any] = {}
    for number, (name, declared) in enumerate(schema["properties"].items()):
        default = ... if name in required else declared.get("default")
        field = Field(default, alias=name)
        # A name of its own: a property may be called as a method of the model.
        fields[f"field_{number}"] = (annotation_of(declared), field)
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def annotation_of(schema: dict[str, Any]) -> Any:
    """Return the type that a person would write for *schema*."""
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    kind = schema.get("type")
    if not isinstance(kind, str):
        return Any
    if kind == "array" and isinstance(schema.get("items"), dict):
        return list[annotation_of(schema["items"])]  # type: ignore[misc]
    if kind == "object" and schema.get("properties"):
        return model_of(schema)
    return TYPES[kind]


if __name__ == "__main__":
    main()
