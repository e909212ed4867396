"""What it costs to accept a call: ours, the bare engines, and peers, on one schema of
eight properties, nested.

    python benchmarks/accept.py [--rounds 30] [--calls 200] > accept.json

One process, one run, the same arguments: the contenders take turns round by round, so
that a slow moment of the machine falls on all of them alike. Each figure is that of the
fastest round, in microseconds a call: what other work on the machine adds is left out;
the document has the median too. A table with the targets and the measurements goes to
stderr, one JSON document to stdout. Exit status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import fastjsonschema
import jsonschema
import jsonschema_rs
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from skillruntime.contract import Contract, Schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["topics", "recipient"],
    "additionalProperties": False,
    "properties": {
        "topics": {
            "type": "array",
            "items": {"type": "string", "minLength": 2},
            "minItems": 1,
            "maxItems": 5,
        },
        "time_range": {
            "type": "string",
            "enum": ["today", "this_week", "this_month"],
            "default": "today",
        },
        "max_articles": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "language": {"type": "string", "pattern": "^[a-z]{2}$", "default": "en"},
        "threshold": {"type": "number", "minimum": 0, "maximum": 1},
        "save": {"type": "boolean", "default": False},
        "recipient": {
            "type": "object",
            "required": ["name"],
            "additionalProperties": False,
            "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        },
        "sources": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["url"],
                "additionalProperties": False,
                "properties": {"url": {"type": "string"}, "weight": {"type": "number"}},
            },
        },
    },
}
FULL: dict[str, Any] = {
    "topics": ["AI regulation", "quantum computing"],
    "time_range": "this_week",
    "max_articles": 3,
    "language": "en",
    "threshold": 0.5,
    "save": False,
    "recipient": {"name": "Ada", "age": 36},
    "sources": [
        {"url": "https://example.org/a", "weight": 0.5},
        {"url": "https://example.org/b"},
    ],
}
SPARSE: dict[str, Any] = {"topics": ["AI regulation"], "recipient": {"name": "Ada"}}
TEXT = json.dumps(FULL)
MALFORMED = json.dumps(
    FULL
    | {
        "max_articles": "3",
        "topics": "AI regulation",
        "recipient": {"name": "Ada", "age": "36"},
        "save": "True",
    }
)
FENCED = f"Here you are:\n```json\n{MALFORMED}\n```"
REFUSED = json.dumps(FULL | {"max_articles": "three", "mood": "good"})
ONE_ERROR = FULL | {"max_articles": "3"}


class Recipient(BaseModel):
    """The nested object of SCHEMA."""

    model_config = ConfigDict(extra="forbid")
    name: str
    age: int | None = None


class Source(BaseModel):
    """The item of SCHEMA's nested array."""

    model_config = ConfigDict(extra="forbid")
    url: str
    weight: float | None = None


class Arguments(BaseModel):
    """SCHEMA, as a pydantic model."""

    model_config = ConfigDict(extra="forbid")
    topics: list[str] = Field(min_length=1, max_length=5)
    time_range: Literal["today", "this_week", "this_month"] = "today"
    max_articles: int = Field(5, ge=1, le=10)
    language: str = Field("en", pattern="^[a-z]{2}$")
    threshold: float | None = Field(None, ge=0, le=1)
    save: bool = False
    recipient: Recipient
    sources: list[Source] = []


def seconds(call: Callable[[], Any], calls: int) -> float:
    """Return the CPU time of one call, the mean over *calls*: other work on the machine
    does not count.
    """
    started = time.process_time()
    for _ in range(calls):
        call()
    return (time.process_time() - started) / calls


def contenders() -> dict[str, Callable[[], Any]]:
    """Return what is timed, by name."""
    contract = Contract.from_dict({"input": SCHEMA}, name="digest")
    engine = jsonschema_rs.validator_for(SCHEMA)
    reference = jsonschema.Draft202012Validator(SCHEMA)
    compiled = fastjsonschema.compile(SCHEMA, use_default=False)
    adapter = TypeAdapter(Arguments)
    tool = StructuredTool(
        name="digest",
        description="Digest.",
        args_schema=Arguments,
        func=lambda **_: None,
    )

    def refuse() -> None:
        try:
            contract.accept(REFUSED)
        except ValueError:
            raise
        except Exception:
            return
        raise AssertionError("it was accepted")

    def least_repair() -> dict[str, Any]:
        """Find the one error, convert its value, ask again and say what was done: the
        least that a repair takes.
        """
        if engine.is_valid(ONE_ERROR):
            raise AssertionError("it is valid")
        repaired, repairs = dict(ONE_ERROR), []
        for error in engine.iter_errors(ONE_ERROR):
            [name] = error.instance_path
            repaired[name] = int(error.instance)
            repairs.append(
                {"path": f"/{name}", "before": error.instance, "after": repaired[name]}
            )
        if not engine.is_valid(repaired):
            raise AssertionError("it is not repaired")
        return {"arguments": repaired, "repairs": repairs}

    numbers = iter(range(10**9))

    def compile_schema() -> Schema:
        return Schema({**SCHEMA, "$comment": str(next(numbers))})

    return {
        "jsonschema_rs is_valid": lambda: engine.is_valid(FULL),
        "accept mapping": lambda: contract.accept(FULL, fill_defaults=False),
        "accept mapping, defaults asked for, none missing": lambda: contract.accept(
            FULL
        ),
        "accept mapping, four defaults filled": lambda: contract.accept(SPARSE),
        "jsonschema_rs is_valid, sparse": lambda: engine.is_valid(SPARSE),
        "json.loads": lambda: json.loads(TEXT),
        "json.loads + is_valid": lambda: engine.is_valid(json.loads(TEXT)),
        "accept text": lambda: contract.accept(TEXT, fill_defaults=False),
        "least for one repair": least_repair,
        "accept mapping, one repair": lambda: contract.accept(
            ONE_ERROR, fill_defaults=False
        ),
        "accept text, four repairs": lambda: contract.accept(
            MALFORMED, fill_defaults=False
        ),
        "accept text, fence, prose and four repairs": lambda: contract.accept(
            FENCED, fill_defaults=False
        ),
        "refuse text, two errors": refuse,
        "compile a schema": compile_schema,
        "pydantic TypeAdapter, mapping": lambda: adapter.validate_python(FULL),
        "pydantic TypeAdapter, sparse": lambda: adapter.validate_python(SPARSE),
        "pydantic TypeAdapter, text": lambda: adapter.validate_json(TEXT),
        "fastjsonschema, mapping": lambda: compiled(FULL),
        "jsonschema, mapping": lambda: reference.is_valid(FULL),
        "LangChain StructuredTool parsing, mapping": lambda: tool._parse_input(
            FULL, None
        ),
    }


def targets(us: dict[str, float]) -> list[tuple[str, float, float, str]]:
    """Return each target: what is compared, the bound, what was measured, the unit."""
    accept, text = us["accept mapping"], us["accept text"]
    return [
        ("accept a mapping / is_valid", 10, accept / us["jsonschema_rs is_valid"], "x"),
        (
            "accept, four defaults filled / is_valid",
            20,
            us["accept mapping, four defaults filled"]
            / us["jsonschema_rs is_valid, sparse"],
            "x",
        ),
        (
            "accept a mapping / pydantic TypeAdapter",
            2.5,
            accept / us["pydantic TypeAdapter, mapping"],
            "x",
        ),
        (
            "accept, four defaults filled / pydantic TypeAdapter",
            2,
            us["accept mapping, four defaults filled"]
            / us["pydantic TypeAdapter, sparse"],
            "x",
        ),
        ("accept a mapping / jsonschema", 0.1, accept / us["jsonschema, mapping"], "x"),
        (
            "accept a text / (json.loads + accept a mapping)",
            3,
            text / (us["json.loads"] + accept),
            "x",
        ),
        (
            "accept, one repair / the least that it takes",
            20,
            us["accept mapping, one repair"] / us["least for one repair"],
            "x",
        ),
        ("accept a text, four repairs", 300, us["accept text, four repairs"], "us"),
        (
            "accept a text, fence, prose and four repairs",
            300,
            us["accept text, fence, prose and four repairs"],
            "us",
        ),
        ("compile a schema", 250, us["compile a schema"], "us"),
    ]


def main() -> int:
    """Time every contender in turns, print the table and the document; 1 if a target is
    missed.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--calls", type=int, default=200)
    options = parser.parse_args()
    entrants = contenders()
    samples: dict[str, list[float]] = {name: [] for name in entrants}
    for call in entrants.values():
        seconds(call, 20)
    gc.disable()
    for _ in range(options.rounds):
        for name, call in entrants.items():
            calls = (
                options.calls
                if "compile" not in name and name != "jsonschema, mapping"
                else options.calls // 10
            )
            samples[name].append(seconds(call, max(calls, 1)))
        gc.collect()
    us = {name: min(times) * 1e6 for name, times in samples.items()}
    for name, microseconds in us.items():
        print(f"{name:55} {microseconds:10.2f} us", file=sys.stderr)
    rows = targets(us)
    print(f"\n{'target':55} {'at most':>10} {'measured':>10}", file=sys.stderr)
    for what, bound, measured, unit in rows:
        met = "met" if measured <= bound else "MISSED"
        print(
            f"{what:55} {bound:>8g} {unit:2} {measured:>7.3g} {unit:2} {met}",
            file=sys.stderr,
        )
    document = {
        "machine": platform.processor() or platform.machine(),
        "python": platform.python_version(),
        "microseconds": us,
        "microseconds_median": {
            name: statistics.median(times) * 1e6 for name, times in samples.items()
        },
        "targets": [
            {
                "what": what,
                "at_most": bound,
                "measured": measured,
                "unit": unit,
                "met": measured <= bound,
            }
            for what, bound, measured, unit in rows
        ],
    }
    print(json.dumps(document, indent=1))
    return 0 if all(measured <= bound for _, bound, measured, _ in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
