"""``python -m tests.hostile.fuzz``: random malformed input for everything that reads a
skill.

Documents are made by changing sound ones, so that most pass the first parser (JSON,
YAML, Python) and reach what lies behind it. A finding is any exception that is not one
of this library's own, or an input that takes longer than allowed. The same seed gives
the same inputs.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillruntime.adapters.tool_formats import (
    to_anthropic,
    to_gemini,
    to_mcp,
    to_openai,
)
from skillruntime.catalog import discover, validate
from skillruntime.cli.validate import contract_findings
from skillruntime.contract import Contract, Schema
from skillruntime.derive import derive
from skillruntime.errors import SkillRuntimeError
from skillruntime.remote import SkillDescriptor
from skillruntime.runtime import SkillRuntime
from tests.catalog.parts import STYLES
from tests.hostile.fuzz_functions import FUNCTIONS
from tests.hostile.fuzz_sources import CALLS, MIGRATED, SCRIPTS

__all__ = ["TARGETS", "Finding", "fuzz"]

_SLOW = 20.0  # seconds of CPU for one input, on any machine


@dataclass(frozen=True, slots=True)
class Finding:
    """An input that broke something: its target, the seed that makes it again, and what
    happened.
    """

    target: str
    seed: int
    what: str
    input: Any = field(repr=False)


@dataclass(slots=True)
class Report:
    """What a run tried: how many inputs, how many got past the first parser, and what
    was found.
    """

    target: str
    inputs: int = 0
    parsed: int = 0
    findings: list[Finding] = field(default_factory=list)


def fuzz(
    target: str,
    *,
    inputs: int | None = None,
    seconds: float | None = None,
    seed: int = 0,
) -> Report:
    """Try random inputs on *target*, until *inputs* were tried or *seconds* have
    passed.
    """
    make, attempt = TARGETS[target]
    report = Report(target)
    ends = None if seconds is None else time.monotonic() + seconds
    while (inputs is None or report.inputs < inputs) and (
        ends is None or time.monotonic() < ends
    ):
        number = seed + report.inputs
        made = make(random.Random(f"{target}-{number}"))
        report.inputs += 1
        before = time.process_time()
        try:
            report.parsed += attempt(made)
        except SkillRuntimeError:
            report.parsed += 1  # refused in words: it was understood
        except Exception as error:
            report.findings.append(
                Finding(target, number, f"{type(error).__name__}: {error}"[:200], made)
            )
        if (took := time.process_time() - before) > _SLOW:
            report.findings.append(Finding(target, number, f"took {took:.0f} s", made))
    return report


# What is changed, and what it is changed to.

_ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        False,
        0,
        -1,
        5,
        2**63,
        1.5,
        1e308,
        "",
        "x",
        "1.0.0",
        "*",
        "^1",
        "\0",
        "\ud800",
        "\u202e",
        "é" * 50,
    ),
    *(
        [],
        {},
        [[]],
        {"": {}},
        {"$ref": "#"},
        {"$ref": "#/$defs/a"},
        {"type": "object"},
        ["a", 1, None],
        "x" * 5000,
    ),
    *(
        "../../etc/passwd",
        "/bin/sh",
        "http://127.0.0.1:1/",
        "(a+)+$",
        "[",
        {"type": ["string", "null"]},
        -0.0,
    ),
)
_WORDS = (
    *(
        "type",
        "properties",
        "required",
        "items",
        "$ref",
        "$defs",
        "enum",
        "const",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
    ),
    *(
        "pattern",
        "format",
        "minimum",
        "maxLength",
        "uniqueItems",
        "additionalProperties",
        "patternProperties",
        "if",
    ),
    *(
        "then",
        "else",
        "prefixItems",
        "contains",
        "$dynamicRef",
        "$anchor",
        "$id",
        "unevaluatedProperties",
        "default",
    ),
    *(
        "input",
        "output",
        "run",
        "script",
        "requires",
        "migrations",
        "steps",
        "version",
        "policy",
        "annotations",
        "name",
    ),
    *(
        "description",
        "network",
        "environment",
        "command_line",
        "timeout_seconds",
        "accepts",
        "from",
        "to",
        "wrap",
    ),
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["topics"],
    "additionalProperties": False,
    "properties": {
        "topics": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "uniqueItems": True,
        },
        "limit": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "when": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        "nested": {"$ref": "#/$defs/a"},
        "mode": {"enum": ["fast", "slow"]},
        "file": {"type": "string", "format": "path", "pattern": "^[a-z]+$"},
    },
    "$defs": {"a": {"type": "object", "properties": {"b": {"$ref": "#/$defs/a"}}}},
}
_CONTRACT: dict[str, Any] = {
    "version": "2.0.0",
    "description": "Makes a digest.",
    "input": _SCHEMA,
    "output": {"type": "object", "properties": {"pages": {"type": "integer"}}},
    "requires": {
        "commands": ["git"],
        "environment": ["KEY"],
        "network": ["example.com"],
        "packages": ["pypdf>=5"],
    },
    "run": {"script": "scripts/run.py", "timeout_seconds": 3, "environment": ["OTHER"]},
    "annotations": {"read_only": True, "idempotent": True},
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": {"properties": {"topic": {"type": "string"}}},
            "steps": [
                {"wrap": "/topic"},
                {"rename": {"from": "/topic", "to": "/topics"}},
            ],
        }
    ],
}
_ARGUMENTS: dict[str, Any] = {
    "topics": ["a", "b"],
    "limit": 3,
    "when": "2026-01-02",
    "nested": {"b": {}},
    "mode": "fast",
}
_FRONT = (
    "name: sample\ndescription: A sample. Use when testing.\nlicense:"
    ' MIT\nallowed-tools: Read Bash(git:*)\nmetadata:\n  version: "1.0.0"\n  tags: "a,'
    ' b"\nrequires:\n  commands: [git]\ncompatibility: any\n'
)
_DESCRIPTOR: dict[str, Any] = {
    "protocol": {"version": "1.0.0"},
    "id": "com.example.translate-v1",
    "name": "Translate",
    "version": "1.2.0",
    "capability_type": "api",
    "description": "Translates.",
    "provider": {
        "name": "Example",
        "url": "https://example.com",
        "contact": "a@example.com",
    },
    "endpoint": {
        "url": "https://example.com/invoke",
        "status_url": "https://example.com/status/{execution_id}",
        "timeout_ms": 1000,
        "retry": {"max_attempts": 3, "backoff_ms": 1000},
    },
    "inputs": [
        {"name": "text", "type": "string", "required": True, "description": "The text"},
        {
            "name": "mode",
            "type": "any",
            "default": "fast",
            "schema": {"enum": ["fast", "slow"]},
        },
        {
            "name": "rows",
            "type": "array",
            "default": None,
            "schema": {"items": {"type": "integer"}},
        },
    ],
    "output": {"content_type": "application/json", "schema": {"type": "object"}},
    "auth": {
        "type": "oauth2",
        "oauth2": {"token_url": "https://example.com/token", "scopes": {"a": "A"}},
    },
    "access": "public",
    "tags": ["a"],
    "created_at": "2025-03-20T14:30:00Z",
    "extensions": {
        "annotations": {"readOnlyHint": True},
        "input_schema": _SCHEMA,
        "wait_seconds": 1.5,
        "cancel": True,
    },
}


def _changed(value: Any, rng: random.Random, times: int) -> Any:
    """Return a copy of a document in which some places hold something odd, moved,
    missing or added.
    """
    document = copy.deepcopy(value)
    for _ in range(times):
        places = _places(document)
        if not places:
            return rng.choice(_ODD)
        holder, key = rng.choice(places)
        action = rng.random()
        if action < 0.45:
            holder[key] = copy.deepcopy(rng.choice(_ODD))
        elif action < 0.6:
            del holder[key]
        elif action < 0.8 and isinstance(holder, dict):
            holder[rng.choice(_WORDS)] = copy.deepcopy(rng.choice(_ODD))
        else:
            other, place = rng.choice(places)
            holder[key] = copy.deepcopy(
                other.get(place) if isinstance(other, dict) else None
            )
    return document


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    pending = [value]
    while pending and len(found) < 2000:
        holder = pending.pop()
        keys = (
            holder
            if isinstance(holder, dict)
            else range(len(holder))
            if isinstance(holder, list)
            else ()
        )
        for key in keys:
            found.append((holder, key))
            pending.append(holder[key])
    return found


def _damaged(text: str, rng: random.Random) -> str:
    """Return *text* with a few characters removed, repeated or replaced."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(text) + 1), rng.randint(0, 12)
        part = rng.choice(
            (
                "",
                text[at : at + length] * 3,
                "\x00",
                "{",
                "}",
                '"',
                "\\",
                "\n",
                "\t- ",
                ": ",
                "\ud800",
                "é",
            )
        )
        text = text[:at] + part + text[at + length :]
    return text


def _json_of(document: dict[str, Any], most: int = 6) -> Callable[[random.Random], str]:
    def make(rng: random.Random) -> str:
        text = json.dumps(_changed(document, rng, rng.randint(1, most)))
        return _damaged(text, rng) if rng.random() < 0.2 else text

    return make


# What models make of a value: written as a text, in a container, or in another form.
_MISWRITTEN: tuple[Callable[[Any], Any], ...] = (
    *(
        str,
        repr,
        json.dumps,
        lambda value: [value],
        lambda value: {"value": value},
        lambda value: f" {value} ",
    ),
    *(
        lambda value: f"{value} kg",
        lambda value: None,
        lambda value: str(value).upper(),
        lambda value: f"'{value}'",
    ),
    *(
        lambda value: value[0] if isinstance(value, list) and value else value,
        lambda value: json.dumps(str(value)),
    ),
)
_WRAPPED = (
    *(
        "%s",
        "```json\n%s\n```",
        "Here it is: %s Done.",
        "%s}",
        "%s,",
        '{"arguments": %s}',
        '{"input": %s, "x": 1}',
    ),
    *(
        "<tool_call>%s</tool_call>",
        '{"name": "sample", "arguments": %s}',
        "sample(%s)",
        "[%s]",
        "// a\n%s",
    ),
)


def _call(rng: random.Random) -> tuple[dict[str, Any], str]:
    """Return a schema and arguments for it as a model might write them."""
    schema, arguments = rng.choice((*CALLS, (_SCHEMA, _ARGUMENTS)))
    document = copy.deepcopy(arguments)
    for _ in range(rng.randint(0, 3)):
        holder, key = rng.choice(_places(document))
        if isinstance(holder, dict) and rng.random() < 0.2:
            holder[rng.choice((key.upper(), f"_{key}", key[:-1], f" {key}"))] = (
                holder.pop(key)
            )
        else:
            holder[key] = rng.choice(_MISWRITTEN)(holder[key])
        if not _places(document):
            break
    if rng.random() < 0.3:
        document = _changed(document, rng, 1)
    text = (
        repr(document)
        if rng.random() < 0.1
        else json.dumps(document, indent=rng.choice((None, 1)))
    )
    text = rng.choice(_WRAPPED).replace("%s", text) if rng.random() < 0.3 else text
    return schema, _damaged(text, rng) if rng.random() < 0.2 else text


def _older_call(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """Return a contract with migrations, changed, and arguments of one of its
    versions.
    """
    document, calls = MIGRATED
    changed = {
        **document,
        "migrations": _changed(document["migrations"], rng, rng.randint(0, 2)),
    }
    return json.dumps(changed), _changed(rng.choice(calls), rng, rng.randint(0, 2))


def _script(rng: random.Random) -> tuple[str, str]:
    """Return the name and the text of a script of any kind that is read, changed."""
    name, source = rng.choice(SCRIPTS)
    return name, _text_of(source)(rng)


def _text_of(source: str) -> Callable[[random.Random], str]:
    lines = source.splitlines(keepends=True)

    def make(rng: random.Random) -> str:
        changed = list(lines)
        for _ in range(rng.randint(1, 2)):
            at = rng.randrange(len(changed))
            changed[at : at + 1] = rng.choice(
                (
                    [],
                    [changed[at]] * 2,
                    [rng.choice(lines)],
                    [_damaged(changed[at], rng)],
                )
            )
            changed = changed or [""]
        return "".join(changed)

    return make


# What reads them; each returns whether the input got past the first parser.


def _skill(
    front: str,
    contract: str | None = None,
    script: tuple[str, str] = ("run.py", "print(1)"),
) -> bool:
    with tempfile.TemporaryDirectory(prefix="fuzz-") as root:
        directory = Path(root, "skills", "sample")
        (directory / "scripts").mkdir(parents=True)
        _write(
            directory / "SKILL.md",
            f"---\n{front}---\nRun `python scripts/{script[0]} a --limit 3`.\n",
        )
        if contract is not None:
            _write(directory / "contract.json", contract)
        _write(directory / "scripts" / script[0], script[1])
        beside = Path(root, "skills", "beside")
        beside.mkdir()
        _write(
            beside / "SKILL.md",
            "---\nname: beside\ndescription: Beside. Use when testing.\n---\nDo it.\n",
        )
        catalog = discover(Path(root, "skills"))
        runtime = SkillRuntime(catalog, approve=lambda request: False)
        for name in runtime.callable_names():
            made = runtime.contract(name)
            for convert in (to_openai, to_anthropic, to_gemini, to_mcp):
                json.dumps(convert(made))
            runtime.missing(name)
            json.dumps(runtime.call_sync(name, {"topics": "a"}).to_dict(), default=repr)
        for name in catalog:
            runtime.session().activate(name)
            contract_findings(catalog.activate(name))
        catalog.search("a sample for testing", 3)
        for style in STYLES:
            catalog.to_prompt(style)
        validate(Path(root, "skills"))
        if "beside" not in catalog:
            raise AssertionError("the skill beside it is gone")
        if contract is not None:
            return _is_json(contract)
        stem = Path(script[0]).stem
        return (
            "sample" in catalog
            if script[1] == "print(1)"
            else f"sample/{stem}" in runtime.callable_names()
        )


def _write(path: Path, text: str) -> None:
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def _accept(call: tuple[dict[str, Any], str]) -> bool:
    schema, text = call
    document = {
        **_CONTRACT,
        "input": schema,
        "migrations": _CONTRACT["migrations"] if schema is _SCHEMA else [],
    }
    with suppress(SkillRuntimeError):
        Contract.from_dict(copy.deepcopy(document), name="sample").accept(text)
    return _is_json(text)


def _migrate(call: tuple[str, dict[str, Any]]) -> bool:
    text, arguments = call
    contract = Contract.from_dict(json.loads(text), name="sample")
    for version in (None, "1.0.0", "2.5.0", "3.0.0"):
        with suppress(SkillRuntimeError):
            contract.accept(copy.deepcopy(arguments), version=version)
    return True


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _compile(text: str) -> bool:
    try:
        document = json.loads(text)
    except ValueError:
        return False
    Schema(document).is_valid(_ARGUMENTS)
    return True


def _describe(text: str) -> bool:
    try:
        document = json.loads(text)
    except ValueError:
        return False
    read = SkillDescriptor.from_dict(document)
    read.to_contract()
    SkillDescriptor.from_dict(
        json.loads(json.dumps(read.to_dict()))
    )  # what is written can be read again
    return True


def _derive(script: tuple[str, str]) -> bool:
    name, source = script
    derivation = derive(source.encode("utf-8", "surrogatepass"), path=f"scripts/{name}")
    if derivation is None:
        return False
    derivation.to_contract("sample/run")
    return True


TARGETS: dict[str, tuple[Callable[[random.Random], Any], Callable[[Any], bool]]] = {
    "frontmatter": (_text_of(_FRONT), _skill),
    "contract": (_json_of(_CONTRACT, 3), lambda text: _skill(_FRONT, text)),
    "arguments": (_call, _accept),
    "migrations": (_older_call, _migrate),
    "schema": (_json_of(_SCHEMA), _compile),
    "descriptor": (_json_of(_DESCRIPTOR, 2), _describe),
    "derive": (_script, _derive),
    "tools": (_script, lambda script: _skill(_FRONT, script=script)),
    **FUNCTIONS,
}
"""The targets by name: what makes an input, and what reads it."""


def main() -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.fuzz", description=__doc__
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"of {', '.join(TARGETS)}; default: all",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=60.0,
        help="how long to try each target (default: 60)",
    )
    parser.add_argument(
        "--inputs",
        type=int,
        help="how many inputs to try on each target, instead of a time",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="where to begin (default: 0)"
    )
    options = parser.parse_args()
    found = 0
    for target in options.targets or TARGETS:
        seconds = options.seconds
        if options.inputs is not None:
            seconds = None
        report = fuzz(target, inputs=options.inputs, seconds=seconds, seed=options.seed)
        share = 100 * report.parsed / max(1, report.inputs)
        sys.stdout.write(
            f"{target:12} {report.inputs:9,} inputs, {share:3.0f} % past the first"
            f" parser, {len(report.findings)} findings\n"
        )
        for finding in report.findings[:20]:
            sys.stdout.write(
                f"  {finding.seed}:"
                f" {finding.what.encode('unicode_escape').decode('ascii')}\n"
            )
        sys.stdout.flush()
        found += len(report.findings)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
