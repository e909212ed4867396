"""What a log says about a tool's schema: the changes after which models get it right
more often.

The law: after a change every call that was valid is valid, which `compare` proves of
each before it is proposed.
"""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skillruntime.adapters.mcp_proxy.reports.report import Report
from skillruntime.compatibility.comparison import Bump, compare
from skillruntime.contract.repair_rules import DEFAULT, NULL_OPTIONAL, NULL_TEXT, RULES
from skillruntime.contract.schemas.pointer import parse_pointer
from skillruntime.contract.schemas.wording import in_words
from skillruntime.errors import InvalidSkillError

__all__ = ["Suggestion", "suggestions"]

FEWEST = 3
"""Calls, below which a mistake may be one model's on one day."""
NEARLY_ALL = 0.9
"""The share of the calls without a parameter that have another name, above which that
is not by chance.
"""
Names = tuple[str, ...]
_ADVICE = {rule.id: rule.advice for rule in RULES.values() if rule.advice is not None}
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change: ``alias``, ``enum``, ``default``, ``nullable`` or ``description``,
    for which *calls* speak.

    ``other-names`` changes nothing: it says what calls have in place of required
    parameters, where that may mean two. *before* and *after* are contract documents:
    the tool's schema as ``input``, and ``aliases``, which ``--tool-options`` and
    `enforce` take too.
    """

    kind: str
    tool: str
    path: str
    calls: int
    reason: str
    before: dict[str, Any]
    after: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the change as a JSON object."""
        return {name: getattr(self, name) for name in self.__slots__}

    def parts(self) -> tuple[str, str]:
        """Return what differs, before and after, as JSON."""
        if self.kind == "alias":
            return "{}", json.dumps(self.after["aliases"])
        schemas = [document["input"] for document in (self.before, self.after)]
        if self.kind == "default":
            found = [{"required": each["required"]} for each in schemas]
        else:
            found = [_node(each, parse_pointer(self.path)) or {} for each in schemas]
        before, after = (json.dumps(each, ensure_ascii=False) for each in found)
        return before, after


def suggestions(report: Report) -> list[Suggestion]:
    """Return the changes that the log of *report* speaks for, those of most calls
    first.

    Only tools whose schema is in the log have any.
    """
    found: list[Suggestion] = []
    for tool, schema in report.schemas.items():
        in_place = _in_place(report, tool, schema.get("properties", {}))
        logged = _LoggedCalls(report, tool, schema, in_place)
        for change in [*_renamed(logged), *_changes(logged)]:
            if change.calls >= FEWEST and _is_harmless(change):
                found.append(change)
    return sorted(
        found, key=lambda each: (-each.calls, each.tool, each.path, each.kind)
    )


@dataclass(frozen=True, slots=True)
class _LoggedCalls:
    """What a log says about the calls of one tool."""

    report: Report
    tool: str
    schema: dict[str, Any]
    in_place: Counter[tuple[Names, Names]]
    """The calls that lack parameters and have other names, by both."""


def _is_harmless(change: Suggestion) -> bool:
    if change.before == change.after:
        return change.kind == "other-names"
    try:
        return compare(change.before, change.after).bump is not Bump.MAJOR
    except InvalidSkillError:  # an alias that is a parameter itself, say
        return False


def _in_place(
    report: Report, tool: str, properties: dict[str, Any]
) -> Counter[tuple[Names, Names]]:
    """Count the calls that lack required parameters and have other names, by both.

    At least as many of the names as are lacking have a type that one of the parameters
    takes.
    """
    found: Counter[tuple[Names, Names]] = Counter()
    for (called, missing, sent), calls in report.refused.items():
        if called == tool and missing:
            unknown = {name: kind for name, kind in sent if name not in properties}
            taken = set()
            for parameter in missing:
                taken |= _kinds(properties.get(parameter))
            if sum(kind in taken for kind in unknown.values()) >= len(missing):
                found[missing, tuple(unknown)] += calls
    return found


def _renamed(logged: _LoggedCalls) -> Iterator[Suggestion]:
    """Yield an alias for each one name that stands in place of one parameter, and what
    other names calls have.
    """
    before = {"input": logged.schema}
    for (missing, names), calls in logged.in_place.items():
        reason = f"{calls} calls have {_quoted(names)} and lack {_quoted(missing)}"
        path = ""
        if len(missing) == 1:
            path = f"/{missing[0]}"
        kind, after = "other-names", before
        if len(missing) == len(names) == 1 and _is_meant(logged, missing[0], names[0]):
            kind, after = "alias", {**before, "aliases": {missing[0]: [names[0]]}}
        yield Suggestion(kind, logged.tool, path, calls, reason, before, after)


def _is_meant(logged: _LoggedCalls, parameter: str, name: str) -> bool:
    """Return whether *name* means *parameter* in the calls that lack it: it is like it,
    or no other required one is there.

    ``encoding`` beside a ``path`` is not the ``content`` that is lacking as well.
    """
    lacking = 0
    for (called, missing, sent), calls in logged.report.refused.items():
        if called != logged.tool:
            continue
        if parameter in missing:
            lacking += calls
        elif name in dict(sent):
            return False  # it stands beside that parameter, or in place of another
    properties = logged.schema.get("properties", {})
    like = [each for each in properties if _is_like(name, each)]
    if like:
        return like == [parameter]
    if logged.schema.get("required") != [parameter]:
        return False
    renamed = 0
    for (missing, names), calls in logged.in_place.items():
        if missing == (parameter,) and len(names) == 1:
            renamed += calls
    return renamed >= NEARLY_ALL * lacking


def _quoted(names: Names) -> str:
    return ", ".join(map(repr, names))


def _is_like(name: str, other: str) -> bool:
    """Return whether two names share a word (``file_path``, ``path``), or one shortens
    the other (``cmd``, ``command``).
    """
    words, others = (
        {word.lower() for word in _WORDS.findall(each)} for each in (name, other)
    )
    if words & others:
        return True
    short, long = sorted((name.lower(), other.lower()), key=len)
    letters = iter(long)
    return short[:1] == long[:1] and all(letter in letters for letter in short)


def _kinds(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    kinds = schema.get("type", [])
    found = {kinds} if isinstance(kinds, str) else set(kinds)
    if "number" in found:
        found.add("integer")
    return found


def _changes(logged: _LoggedCalls) -> Iterator[Suggestion]:
    """Yield what the repairs and errors at each place speak for.

    What is left out, what has another name and what has a wrong shape are different
    things.
    """
    schema = logged.schema
    places: dict[str, Counter[str]] = {}
    for (called, path, rule), calls in logged.report.places.items():
        if called == logged.tool and path:
            # All items of an array are one place.
            place = re.sub(r"/\d+(?=/|$)", "/0", path)
            places.setdefault(place, Counter())[rule] += calls
    for path, rules in places.items():
        part = _node(schema, parse_pointer(path))
        if part is None:
            continue
        for (missing, _), calls in logged.in_place.items():
            if path[1:] in missing:
                rules["MISSING_REQUIRED_PARAM"] -= calls
        for kind, calls, reason, new in _proposals(part, rules):
            changed = copy.deepcopy(schema)
            node = _node(changed, parse_pointer(path))
            if kind == "default":
                required = schema.get("required", ())
                changed["required"] = [name for name in required if f"/{name}" != path]
            elif node is not None:
                node.clear()
                node.update(new)
            yield Suggestion(
                kind,
                logged.tool,
                path,
                calls,
                f"{calls} calls {reason}",
                {"input": schema},
                {"input": changed},
            )


def _proposals(
    part: dict[str, Any], rules: Counter[str]
) -> Iterator[tuple[str, int, str, dict[str, Any]]]:
    """Yield the kind of each change, the calls that speak for it, what these do, and
    what takes the place of *part*.
    """
    omitted = rules["MISSING_REQUIRED_PARAM"]
    nulls = rules[NULL_OPTIONAL] + rules[NULL_TEXT]
    shapes: Counter[str] = Counter()
    for rule, calls in rules.items():
        if rule in _ADVICE or rule == "INVALID_INPUT":
            shapes[rule] = calls
    options = _options(part)
    if rules[DEFAULT]:
        yield (
            "default",
            rules[DEFAULT],
            "leave it out, and it declares a default",
            part,
        )
    if nulls:
        yield "nullable", nulls, "send null for what they leave out", _nullable(part)
    if omitted:
        yield (
            "description",
            omitted,
            "leave it out",
            _described(part, f"Required: {in_words(part)}."),
        )
    if shapes and options:
        kept = {
            key: value for key, value in part.items() if key not in ("anyOf", "oneOf")
        }
        yield (
            "enum",
            shapes.total(),
            "send another value than these",
            {**kept, "type": "string", "enum": options},
        )
    elif shapes:
        rule, _ = shapes.most_common(1)[0]
        words = ", ".join(filter(None, [in_words(part), _ADVICE.get(rule)]))
        reason = f"send another shape: {', '.join(shapes)}"
        yield (
            "description",
            shapes.total(),
            reason,
            _described(part, f"{words[:1].upper()}{words[1:]}."),
        )


def _node(schema: Any, keys: Any) -> dict[str, Any] | None:
    """Return the schema of the parameter at *keys*, where properties and items alone
    lead to it.
    """
    for key in keys:
        if not isinstance(schema, dict):
            return None
        properties = schema.get("properties", {})
        if key in properties:
            schema = properties[key]
        elif str(key).isdigit():
            schema = schema.get("items")
        else:
            return None
    if not isinstance(schema, dict):
        return None
    return schema


def _nullable(part: dict[str, Any]) -> dict[str, Any]:
    text: dict[str, Any] = {
        key: part[key] for key in ("description", "default") if key in part
    }
    inside = {key: value for key, value in part.items() if key not in text}
    return {**text, "anyOf": [inside, {"type": "null"}]}


def _options(part: dict[str, Any]) -> list[str]:
    """Return the strings that are all that *part* takes, where it does not say so as an
    ``enum``.
    """
    branches = part.get("anyOf", part.get("oneOf", []))
    constants = []
    for branch in branches:
        constant = branch.get("const") if isinstance(branch, dict) else None
        if not isinstance(constant, str):
            return []
        constants.append(constant)
    return constants


def _described(part: dict[str, Any], text: str) -> dict[str, Any]:
    old = str(part.get("description", ""))
    if text in old:
        return part
    return {**part, "description": f"{old} {text}".strip()}
