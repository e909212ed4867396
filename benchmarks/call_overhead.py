"""What a call costs above the function itself: LangChain's own tools, our SkillTool,
and the bare runtime.

One process, one run, the same arguments: the contenders take turns round by round, so
that a slow moment of the machine falls on all of them alike. Microseconds of CPU; a
ratio is that of the same round, its median and its worst. Prints a table on stderr and
one JSON document on stdout.

    python benchmarks/call_overhead.py [--rounds 40] [--calls 250]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any, Literal

import jsonschema_rs
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import BaseModel, ConfigDict, Field

from skillruntime.adapters.langchain import SkillTool
from skillruntime.contract import Contract
from skillruntime.runtime import SkillRuntime

ARGUMENTS = {
    "topics": ["AI regulation", "quantum computing"],
    "max_articles_per_topic": 3,
    "save_to_file": False,
}
TOOL_CALL = {"name": "digest", "args": ARGUMENTS, "id": "call_1", "type": "tool_call"}
RESULT = {
    "status": "success",
    "generated_at": "2026-01-01T00:00:00Z",
    "topics_covered": [],
}
REFUSED = {**ARGUMENTS, "max_articles_per_topic": 11}
REFUSED_CALL = {**TOOL_CALL, "args": REFUSED}
REPAIRED = {**ARGUMENTS, "max_articles_per_topic": "3"}

TARGETS = {
    "SkillTool.invoke": {
        "StructuredTool.invoke (pydantic)": 0.6,
        "BaseTool.invoke (pydantic)": 1.15,
        "bare BaseTool.invoke": 1.4,
    },
    "SkillTool.invoke, refused": {"StructuredTool.invoke, refused and handled": 1.7},
    "contract.accept, one repair": {"jsonschema_rs iter_errors": 30},
}
"""How many times the other contender each may take."""

INPUT = {
    "type": "object",
    "required": ["topics"],
    "additionalProperties": False,
    "properties": {
        "topics": {
            "type": "array",
            "items": {"type": "string", "minLength": 2, "maxLength": 100},
            "minItems": 1,
            "maxItems": 5,
        },
        "time_range": {
            "type": "string",
            "enum": ["today", "24h", "this_week", "this_month"],
            "default": "today",
        },
        "max_articles_per_topic": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10,
            "default": 5,
        },
        "output_language": {
            "type": "string",
            "default": "auto",
            "pattern": "^(auto|[a-z]{2})$",
        },
        "output_format": {
            "type": "string",
            "enum": ["prose", "bullets", "structured", "brief"],
            "default": "structured",
        },
        "save_to_file": {"type": "boolean", "default": False},
    },
}
OUTPUT = {
    "type": "object",
    "required": ["status", "generated_at", "topics_covered"],
    "properties": {
        "status": {"enum": ["success", "partial_success", "failed"]},
        "generated_at": {"type": "string"},
        "topics_covered": {"type": "array"},
    },
}


class DigestInput(BaseModel):
    """The same input as ``INPUT``, for LangChain's own tool (which checks no output and
    makes no envelope).
    """

    model_config = ConfigDict(extra="forbid")

    topics: list[str] = Field(min_length=1, max_length=5)
    time_range: Literal["today", "24h", "this_week", "this_month"] = "today"
    max_articles_per_topic: int = Field(5, ge=1, le=10)
    output_language: str = Field("auto", pattern="^(auto|[a-z]{2})$")
    output_format: Literal["prose", "bullets", "structured", "brief"] = "structured"
    save_to_file: bool = False


class BareTool(BaseTool):
    """The least that a tool of LangChain is: it checks nothing and makes no
    envelope.
    """

    name: str = "digest"
    description: str = "Digest"
    args_schema: Any = INPUT

    # Without annotations, which would be evaluated at each call.
    def _run(self, **arguments):  # type: ignore[no-untyped-def]
        return RESULT


class CheckedTool(BaseTool):
    """The same function as a tool of LangChain that checks its arguments by pydantic,
    and has no envelope.
    """

    name: str = "digest"
    description: str = "Digest"
    args_schema: Any = DigestInput

    def _run(self, **arguments):  # type: ignore[no-untyped-def]
        return RESULT


def digest(**arguments: Any) -> dict[str, Any]:
    """Return at once: a skill that takes no time."""
    return RESULT


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--calls", type=int, default=250, help="calls a round")
    options = parser.parse_args()

    runtime = SkillRuntime()
    contract = Contract.from_dict(
        {"version": "2.0.0", "input": INPUT, "output": OUTPUT}, name="digest"
    )
    runtime.implements("digest", contract=contract)(lambda arguments: RESULT)

    async_runtime = SkillRuntime()

    @async_runtime.implements("digest", contract=contract)
    async def async_digest(arguments: dict[str, Any]) -> dict[str, Any]:
        return RESULT

    structured = StructuredTool.from_function(
        digest, name="digest", description="Digest", args_schema=DigestInput
    )
    skill_tool = SkillTool(runtime, "digest", description="Digest")
    bare = BareTool()
    checked = CheckedTool()
    handled = StructuredTool.from_function(
        digest,
        name="digest",
        description="Digest",
        args_schema=DigestInput,
        handle_validation_error=True,
    )
    engine = jsonschema_rs.Draft202012Validator(INPUT)
    loop = asyncio.new_event_loop()
    contenders: dict[str, Callable[[int], None]] = {
        "direct function call": _repeat(lambda: digest(**ARGUMENTS)),
        "runtime.call_sync": _repeat(lambda: runtime.call_sync("digest", ARGUMENTS)),
        "runtime.call (async function)": _repeat_async(
            loop, lambda: async_runtime.call("digest", ARGUMENTS)
        ),
        "runtime.call (worker thread)": _repeat_async(
            loop, lambda: runtime.call("digest", ARGUMENTS)
        ),
        "bare BaseTool.invoke": _repeat(lambda: bare.invoke(TOOL_CALL)),
        "BaseTool.invoke (pydantic)": _repeat(lambda: checked.invoke(TOOL_CALL)),
        "StructuredTool.invoke (pydantic)": _repeat(
            lambda: structured.invoke(TOOL_CALL)
        ),
        "SkillTool.invoke": _repeat(lambda: skill_tool.invoke(TOOL_CALL)),
        "StructuredTool.invoke, refused and handled": _repeat(
            lambda: handled.invoke(REFUSED_CALL)
        ),
        "SkillTool.invoke, refused": _repeat(lambda: skill_tool.invoke(REFUSED_CALL)),
        "jsonschema_rs iter_errors": _repeat(
            lambda: list(engine.iter_errors(REPAIRED))
        ),
        "contract.accept, one repair": _repeat(lambda: contract.accept(REPAIRED)),
    }
    try:
        seconds = _measure(contenders, options.rounds, options.calls)
    finally:
        loop.close()
    _report(seconds, options)


def _repeat(call: Callable[[], Any]) -> Callable[[int], None]:
    def run(times: int) -> None:
        for _ in range(times):
            call()

    return run


def _repeat_async(
    loop: asyncio.AbstractEventLoop, call: Callable[[], Any]
) -> Callable[[int], None]:
    async def run_all(times: int) -> None:
        for _ in range(times):
            await call()

    return lambda times: loop.run_until_complete(run_all(times))


def _measure(
    contenders: dict[str, Callable[[int], None]], rounds: int, calls: int
) -> dict[str, list[float]]:
    """Return the CPU seconds of a call, for every round of every contender."""
    for run in contenders.values():
        run(calls)  # warm
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            started = time.process_time()
            run(calls)
            seconds[name].append((time.process_time() - started) / calls)
    return seconds


def _report(seconds: dict[str, list[float]], options: argparse.Namespace) -> None:
    rows = {
        name: {
            "median_us": round(statistics.median(values) * 1e6, 2),
            "worst_us": round(max(values) * 1e6, 2),
            "ratios": {
                other: _ratio(values, seconds[other], limit)
                for other, limit in TARGETS.get(name, {}).items()
            },
        }
        for name, values in seconds.items()
    }
    print(f"{'':44}{'median us':>11}{'worst us':>11}", file=sys.stderr)
    for name, row in rows.items():
        print(
            f"{name:44}{row['median_us']:11.2f}{row['worst_us']:11.2f}", file=sys.stderr
        )
        for other, ratio in row["ratios"].items():
            line = (
                f"    {ratio['median']} x {other} (worst {ratio['worst']}); target "
                f"{ratio['target']}"
            )
            print(line, file=sys.stderr)
    document = {
        "benchmark": "call_overhead",
        "python": platform.python_version(),
        "rounds": options.rounds,
        "calls_a_round": options.calls,
        "rows": rows,
    }
    print(json.dumps(document, indent=2))


def _ratio(mine: list[float], theirs: list[float], limit: float) -> dict[str, float]:
    ratios = [one / other for one, other in zip(mine, theirs, strict=True)]
    return {
        "median": round(statistics.median(ratios), 3),
        "worst": round(max(ratios), 3),
        "target": limit,
    }


if __name__ == "__main__":
    main()
