"""How many malformed calls of models are repaired, and how many wrongly: this library,
and peers on the same calls.

    python benchmarks/coercion.py PATH [--failures] > coercion.json

PATH is a file of cases, one JSON object a line: ``schema``, ``raw`` (the text a model
sent), ``expect`` (``ok`` or ``refuse``), ``value``, ``category``; see ``Case``. A table
goes to stderr, one JSON document to stdout. Exit status 1 if a target is missed.

- repaired: a value was expected, and exactly that value came. Out of the repairable:
  all but the ``valid*`` ones.
- mis-repaired: a value other than the expected one came, or any value where a refusal
  was expected. Out of all.
- held: a refusal was expected, and no value came. Out of the cases that expect a
  refusal.

Values are compared as JSON: 5 equals 5.0, ``true`` never equals 1. Defaults are not
filled in.

The peers are read as kindly as is fair: what they return counts only if it fits the
schema, so that a value any caller would have refused is a refusal, not a mis-repair.
pydantic: a model built from the schema, closed, lax mode; json_repair: with the schema;
BAML: a class built from the schema, its parser alone.
"""

from __future__ import annotations

import argparse
import json
import keyword
import sys
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jsonschema_rs

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError, TruncatedInputError

REFUSED = object()
TARGETS = {"repaired": 0.99, "mis_repaired": 0, "held": 1.0, "valid_changed": 0}
Contender = Callable[[Any, str], Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One call: its schema, the text that was sent, and what it means (or that it must
    be refused).
    """

    id: str
    category: str
    schema: dict[str, Any]
    raw: str
    expect: str
    value: Any = None
    refusal: str | None = None
    value_if_dropped: Any = REFUSED

    @property
    def is_valid(self) -> bool:
        """Whether the call is valid as it was sent."""
        return self.category.startswith("valid")


def is_same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: 5 equals 5.0, and ``true`` never equals 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(
            is_same(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def read_cases(path: Path) -> Iterator[Case]:
    """Yield the cases of the file; unknown fields are ignored."""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.strip():
            record = json.loads(line)
            yield Case(
                **{name: record[name] for name in Case.__slots__ if name in record}
            )


def verdict(case: Case, result: Any) -> str:
    """Return what *result* is worth: repaired, mis_repaired, held, or lost (nothing,
    where a value was expected).
    """
    if result is REFUSED:
        return "held" if case.expect == "refuse" else "lost"
    return (
        "repaired"
        if case.expect == "ok" and is_same(result, case.value)
        else "mis_repaired"
    )


# The contenders: each takes what it prepared from a schema, and a text, and gives a
# value or REFUSED.


@cache
def _contract(schema: str) -> Contract:
    return Contract.from_dict({"input": json.loads(schema)})


def skillruntime(
    schema: str, raw: str, policy: str = "safe", finish_reason: str | None = "stop"
) -> Any:
    """Accept by contract, as a caller that hands on why the model stopped: of itself,
    in all of these cases.
    """
    try:
        accepted = _contract(schema).accept(
            raw, fill_defaults=False, policy=policy, finish_reason=finish_reason
        )
        return accepted.arguments
    except SkillInputError:
        return REFUSED


def without_reason(schema: str, raw: str) -> Any:
    """Accept by contract, as a caller that does not know why the model stopped: an open
    object is not closed.
    """
    return skillruntime(schema, raw, finish_reason=None)


def parse_and_validate(schema: str, raw: str) -> Any:
    """Read as JSON, validate: repair nothing."""
    try:
        return json.loads(raw)
    except ValueError:
        return REFUSED


def pydantic_lax(schema: str, raw: str) -> Any:
    """Validate by a pydantic model in lax mode."""
    from pydantic import ValidationError

    model, defaults = _pydantic_model(schema)
    try:
        sent = model.model_validate_json(raw).model_dump(
            mode="json", by_alias=True, exclude_unset=True
        )
    except ValidationError:
        return REFUSED
    return defaults | sent


@cache
def _pydantic_model(schema: str) -> tuple[Any, dict[str, Any]]:
    document = json.loads(schema)
    declared = {
        name: document["properties"][name] for name in document.get("required", ())
    }
    return _model(document, "Arguments"), {
        key: each["default"] for key, each in declared.items() if "default" in each
    }


def _model(schema: Any, name: str) -> Any:
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for index, (key, member) in enumerate(schema.get("properties", {}).items()):
        default = (
            member.get("default", ...) if key in schema.get("required", ()) else None
        )
        fields[f"field_{index}"] = (
            _annotation(member, f"{name}_{index}"),
            Field(default, alias=key),
        )
    extra: Literal["forbid", "allow"] = (
        "forbid" if schema.get("additionalProperties") is False else "allow"
    )
    return create_model(name, __config__=ConfigDict(extra=extra), **fields)


def _annotation(schema: Any, name: str) -> Any:
    if "enum" in schema:
        return Literal[tuple(schema["enum"])]
    match schema.get("type"):
        case "object" if schema.get("properties"):
            return _model(schema, name)
        case "object":
            return dict[str, Any]
        case "array":
            item = _annotation(schema.get("items", {}), name)
            return list[item]  # type: ignore[valid-type]  # made from data
        case str() as kind:
            return {
                "string": str,
                "integer": int,
                "number": float,
                "boolean": bool,
            }.get(kind, Any)
    return Any


def toolproxy(schema: str, raw: str) -> Any:
    """Repair with toolproxy's `repair_arguments` for a pydantic model, then validate by
    that model, as it does.

    A tool with a parameter whose name is not one for Python (28 valid calls) cannot be
    such a model: refused.
    """
    from pydantic import ValidationError
    from toolproxy.guardrails import repair_arguments

    model = _named_model(schema)
    try:
        repaired = (
            repair_arguments(model, json.loads(raw)) if model is not None else REFUSED
        )
        if not isinstance(repaired, dict):
            return REFUSED
        return model.model_validate(repaired).model_dump(
            mode="json", exclude_unset=True
        )
    except (ValueError, ValidationError):
        return REFUSED


@cache
def _named_model(schema: str) -> Any:
    """Return a model whose fields have the parameters' own names; ``None`` where a name
    is not one for Python.
    """
    from pydantic import ConfigDict, create_model

    fields = _annotated(schema)
    return (
        None
        if fields is None
        else create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    )


def _annotated(schema: str) -> dict[str, Any] | None:
    document = json.loads(schema)
    fields: dict[str, Any] = {}
    for name, member in document.get("properties", {}).items():
        if (
            not name.isidentifier()
            or keyword.iskeyword(name)
            or name.startswith("_")
            or hasattr(object, name)
        ):
            return None
        is_required = name in document.get("required", ())
        kind = _annotation(member, f"Arguments_{name}")
        fields[name] = (
            (kind, member.get("default", ...)) if is_required else (kind | None, None)
        )
    return fields


def json_repair(schema: str, raw: str) -> Any:
    """Repair with json_repair, guided by the schema."""
    import json_repair as library

    try:
        return library.loads(raw, schema=json.loads(schema))
    except (ValueError, TypeError, RecursionError):
        return REFUSED


def baml(schema: str, raw: str) -> Any:
    """Parse with BAML's schema-aligned parser."""
    runtime, module, names = _baml_function(schema)
    import baml_py

    try:
        context = runtime.create_context_manager()
        answer = runtime.parse_llm_response(
            "Call", raw, module, module, module, False, context, None, None, {}
        )
    except baml_py.baml_py.BamlError:
        return REFUSED
    return _plain(answer, names)


def _plain(value: Any, names: dict[str, dict[str, str]]) -> Any:
    """Return BAML's instances as objects with the schema's own names; what is null was
    absent.
    """
    if hasattr(value, "model_extra"):
        own = names[type(value).__name__]
        members = {
            own[field]: member
            for field, member in value.model_extra.items()
            if member is not None
        }
        return {key: _plain(member, names) for key, member in members.items()}
    if isinstance(value, dict):
        return {key: _plain(member, names) for key, member in value.items()}
    return [_plain(item, names) for item in value] if isinstance(value, list) else value


@cache
def _baml_function(
    schema: str,
) -> tuple[Any, types.ModuleType, dict[str, dict[str, str]]]:
    import baml_py
    from pydantic import BaseModel, ConfigDict, create_model

    classes: dict[str, dict[str, str]] = {}
    lines = [
        "type Anything = int | float | bool | string | null | Anything[] | "
        "map<string, Anything>"
    ]
    root = _baml_class(json.loads(schema), "Arguments", classes, lines)
    prompt = 'client "openai/gpt-4o"\n  prompt #"{{ text }} {{ ctx.output_format }}"#'
    lines.append(f"function Call(text: string) -> {root} {{\n  {prompt}\n}}")
    runtime = baml_py.BamlRuntime.from_files(
        "/baml", {"call.baml": "\n".join(lines)}, {}
    )
    module = types.ModuleType("answers")
    config = ConfigDict(extra="allow")
    for name in classes:
        setattr(module, name, create_model(name, __config__=config))
    base: type[BaseModel] = create_model("Anything", __config__=config)
    module.Anything = base  # type: ignore[attr-defined]  # a module made here
    module.types = module  # type: ignore[attr-defined]
    return runtime, module, classes


def _baml_class(
    schema: Any, name: str, classes: dict[str, dict[str, str]], lines: list[str]
) -> str:
    classes[name] = {}
    body: list[str] = []
    for index, (key, member) in enumerate(schema.get("properties", {}).items()):
        classes[name][f"f{index}"] = key
        kind = _baml_type(member, f"{name}{index}", classes, lines)
        optional = "" if key in schema.get("required", ()) else "?"
        body.append(f"  f{index} ({kind}){optional} @alias({json.dumps(key)})")
    lines.append(f"class {name} {{\n" + "\n".join(body) + "\n}")
    return name


def _baml_type(
    schema: Any, name: str, classes: dict[str, dict[str, str]], lines: list[str]
) -> str:
    if "enum" in schema:
        return " | ".join(json.dumps(option) for option in schema["enum"])
    match schema.get("type"):
        case "object" if schema.get("properties"):
            return _baml_class(schema, name, classes, lines)
        case "object":
            return "map<string, Anything>"
        case "array":
            return f"({_baml_type(schema.get('items', {}), name, classes, lines)})[]"
        case str() as kind:
            return {
                "string": "string",
                "integer": "int",
                "number": "float",
                "boolean": "bool",
            }.get(kind, "Anything")
    return "Anything"


def contenders() -> dict[str, Contender]:
    """Return the contenders: the peers that are installed."""
    entrants: dict[str, Contender] = {
        "skillruntime": skillruntime,
        "without finish_reason": without_reason,
        "json + validate": parse_and_validate,
    }
    for name, module, contender in (
        ("pydantic lax", "pydantic", pydantic_lax),
        ("json_repair", "json_repair", json_repair),
        ("baml-py", "baml_py", baml),
        ("toolproxy", "toolproxy", toolproxy),
    ):
        try:
            __import__(module)
        except ImportError:
            print(f"{name} is not installed: left out", file=sys.stderr)
            continue
        entrants[name] = contender
    return entrants


def score(
    cases: list[Case], contender: Contender, *, show: bool = False
) -> dict[str, Any]:
    """Return the figures of one contender, in total and by category."""
    total: Counter[str] = Counter()
    by_category: dict[str, Counter[str]] = defaultdict(Counter)
    for case in cases:
        schema = json.dumps(case.schema)
        result = contender(schema, case.raw)
        if result is not REFUSED and not _fits(schema, result):
            result = REFUSED
        found = verdict(case, result)
        by_category[case.category][found] += 1
        total[found] += 1
        if case.is_valid:
            total["valid_kept" if found == "repaired" else "valid_changed"] += 1
        if show and found in ("lost", "mis_repaired"):
            print(
                f"{found}: {case.id} {case.raw[:200]!r} -> "
                f"{result if found != 'lost' else None}",
                file=sys.stderr,
            )
    valid = sum(case.is_valid for case in cases)
    refusable = sum(case.expect == "refuse" for case in cases)
    return {
        "cases": len(cases),
        "repairable": len(cases) - valid - refusable,
        "repaired": total["repaired"] - total["valid_kept"],
        "mis_repaired": total["mis_repaired"],
        "refusable": refusable,
        "held": total["held"],
        "valid": valid,
        "valid_changed": total["valid_changed"],
        "by_category": {
            name: dict(counts) for name, counts in sorted(by_category.items())
        },
    }


def _fits(schema: str, value: Any) -> bool:
    try:
        return bool(_validator(schema).is_valid(value))
    except (ValueError, TypeError):
        return False


@cache
def _validator(schema: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(schema))


def codes(cases: list[Case]) -> dict[str, int]:
    """Return how many truncated calls were recognized, and how many others were called
    truncated.
    """
    found: Counter[str] = Counter()
    for case in cases:
        if case.expect == "refuse":
            try:
                _contract(json.dumps(case.schema)).accept(case.raw, fill_defaults=False)
            except TruncatedInputError:
                found[
                    "truncated" if case.refusal == "truncated" else "wrongly_truncated"
                ] += 1
            except SkillInputError:
                pass
    return {
        "truncated": sum(case.refusal == "truncated" for case in cases),
        "recognized": found["truncated"],
    } | ({"wrongly_recognized": found["wrongly_truncated"]})


def rules_fired(paths: list[Path]) -> dict[str, dict[str, int]]:
    """Return how often each rule of repair fires on the calls of each file, whatever
    they mean.

    A line has a ``schema`` and the call as ``raw`` or ``payload``: a text or an object.
    """
    found: dict[str, dict[str, int]] = {}
    for path in paths:
        fired: Counter[str] = Counter()
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            contract = _contract(json.dumps(record["schema"]))
            sent = record["raw"] if "raw" in record else record["payload"]
            try:
                accepted = contract.accept(
                    sent,
                    fill_defaults=False,
                    finish_reason=record.get("finish_reason", "stop"),
                )
            except SkillInputError:
                fired["(refused)"] += 1
                continue
            fired.update({repair.rule for repair in accepted.repairs} or {"(as sent)"})
        found[str(path)] = dict(fired.most_common())
    return found


def dropped(cases: list[Case]) -> dict[str, int]:
    """Return how the calls with an unknown key come out where the caller chose to drop
    such keys.
    """
    with_key = [case for case in cases if case.value_if_dropped is not REFUSED]
    results = [
        (case, skillruntime(json.dumps(case.schema), case.raw, "lenient"))
        for case in with_key
    ]
    right = sum(
        result is not REFUSED and is_same(result, case.value_if_dropped)
        for case, result in results
    )
    refused = sum(result is REFUSED for _, result in results)
    return {
        "cases": len(with_key),
        "right": right,
        "refused": refused,
        "wrong": len(with_key) - right - refused,
    }


def table(figures: dict[str, dict[str, Any]]) -> str:
    """Return the figures as a Markdown table: in total, then by category."""
    names = list(figures)
    rows = [["", *names], ["---"] * (len(names) + 1)]
    for label, part, whole in (
        ("repaired", "repaired", "repairable"),
        ("mis-repaired", "mis_repaired", "cases"),
        ("refusals held", "held", "refusable"),
        ("valid changed", "valid_changed", "valid"),
    ):
        cells = [
            f"{each[part]} / {each[whole]} ({each[part] / max(each[whole], 1):.1%})"
            for each in figures.values()
        ]
        rows.append([f"**{label}**", *cells])
    for category in figures[names[0]]["by_category"]:
        cells = []
        for each in figures.values():
            counts = each["by_category"][category]
            wrong = (
                f", {counts['mis_repaired']} wrong" if "mis_repaired" in counts else ""
            )
            cells.append(
                f"{counts.get('repaired', 0) + counts.get('held', 0)} / "
                f"{sum(counts.values())}{wrong}"
            )
        rows.append([category, *cells])
    widths = [max(len(row[column]) for row in rows) for column in range(len(names) + 1)]
    return "\n".join(
        "| "
        + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        + " |"
        for row in rows
    )


def main() -> int:
    """Score every contender, print the table and the document; 1 if a target is
    missed.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", type=Path, help="a JSON Lines file of cases")
    parser.add_argument(
        "--failures",
        action="store_true",
        help="show each case that we lose or mis-repair",
    )
    parser.add_argument(
        "--rules",
        type=Path,
        nargs="*",
        default=[],
        help="more files to count the rules on",
    )
    options = parser.parse_args()
    cases = list(read_cases(options.path))
    figures = {
        name: score(
            cases, contender, show=options.failures and contender is skillruntime
        )
        for name, contender in contenders().items()
    }
    ours = figures["skillruntime"]
    measured = {
        "repaired": ours["repaired"] / max(ours["repairable"], 1),
        "mis_repaired": ours["mis_repaired"],
        "held": ours["held"] / max(ours["refusable"], 1),
        "valid_changed": ours["valid_changed"],
    }
    met = {
        "repaired": measured["repaired"] >= TARGETS["repaired"],
        "mis_repaired": measured["mis_repaired"] == 0,
        "held": measured["held"] == 1.0,
        "valid_changed": measured["valid_changed"] == 0,
    }
    print(table(figures), file=sys.stderr)
    for name, target in TARGETS.items():
        print(
            f"{name}: target {target}, measured {measured[name]:.4g}: "
            f"{'met' if met[name] else 'MISSED'}",
            file=sys.stderr,
        )
    truncated, drops = codes(cases), dropped(cases)
    print(
        f"truncated recognized: {truncated}; unknown keys dropped on request: {drops}",
        file=sys.stderr,
    )
    fired = rules_fired([options.path, *options.rules])
    for path, counts in fired.items():
        print(f"calls in which each rule fires, {path}: {counts}", file=sys.stderr)
    document = {
        "rules": fired,
        "contenders": figures,
        "targets": TARGETS,
        "measured": measured,
        "met": met,
    }
    print(
        json.dumps(
            document | {"truncated": truncated, "on_unknown_drop": drops}, indent=1
        )
    )
    return 0 if all(met.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
