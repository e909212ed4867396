"""Suggest changes to a tool's schema that its log justifies: with them, models send
valid calls more often.

The law: a call that was valid stays valid. `compare` proves that of each change before
it is suggested.
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
"""Fewer calls with a mistake may be those of one model on one day."""
NEARLY_ALL = 0.9
"""The share of the calls without a parameter that must have the other name: below it,
the other name may be chance.
"""
Names = tuple[str, ...]
_ADVICE = {rule.id: rule.advice for rule in RULES.values() if rule.advice is not None}
_WORDS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+")


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One change that *calls* in a log justify: ``alias``, ``enum``, ``default``,
    ``nullable`` or ``description``.

    ``other-names`` changes nothing: it reports the names that calls have in place of
    required parameters, where it is not clear which name means which parameter.
    *before* and *after* are contract documents: the tool's schema as ``input``, and
    ``aliases``, which ``--tool-options`` and `enforce` accept too.
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
        """Return the differing parts, before and after, as JSON."""
        if self.kind == "alias":
            return "{}", json.dumps(self.after["aliases"])
        schemas = [document["input"] for document in (self.before, self.after)]
        if self.kind == "default":
            parts = [{"required": schema["required"]} for schema in schemas]
        else:
            keys = parse_pointer(self.path)
            parts = [_node(schema, keys) or {} for schema in schemas]
        before, after = (json.dumps(part, ensure_ascii=False) for part in parts)
        return before, after


def suggestions(report: Report) -> list[Suggestion]:
    """Return the changes that the log of *report* justifies, ordered by the number of
    calls, largest first.

    A tool whose schema is not in the log has none.
    """
    harmless: list[Suggestion] = []
    for tool, schema in report.schemas.items():
        replaced_names = _replaced_names(report, tool, schema.get("properties", {}))
        logged = _LoggedCalls(report, tool, schema, replaced_names)
        for change in [*_renamed(logged), *_changes(logged)]:
            if change.calls >= FEWEST and _is_harmless(change):
                harmless.append(change)
    return sorted(
        harmless,
        key=lambda change: (-change.calls, change.tool, change.path, change.kind),
    )


@dataclass(frozen=True, slots=True)
class _LoggedCalls:
    """The logged calls of one tool."""

    report: Report
    tool: str
    schema: dict[str, Any]
    replaced_names: Counter[tuple[Names, Names]]
    """The number of calls that lack required parameters and have unknown names, by the
    parameters and the names.
    """


def _is_harmless(change: Suggestion) -> bool:
    """Return whether *change* may be suggested: it changes something, and every call
    that was valid stays valid.

    ``other-names`` must change nothing.
    """
    if change.before == change.after:
        return change.kind == "other-names"
    try:
        return compare(change.before, change.after).bump is not Bump.MAJOR
    except InvalidSkillError:  # an alias that is itself a parameter, for example
        return False


def _replaced_names(
    report: Report, tool: str, properties: dict[str, Any]
) -> Counter[tuple[Names, Names]]:
    """Count the calls that lack required parameters and have unknown names, by the
    parameters and the names.

    A call counts only if it has at least as many unknown names of a fitting type as it
    lacks parameters. A type fits if one of the missing parameters accepts it.
    """
    replaced_names: Counter[tuple[Names, Names]] = Counter()
    for (called, missing, sent), calls in report.refused.items():
        if called == tool and missing:
            unknown = {name: kind for name, kind in sent if name not in properties}
            accepted_kinds = set()
            for parameter in missing:
                accepted_kinds |= _kinds(properties.get(parameter))
            fitting = sum(kind in accepted_kinds for kind in unknown.values())
            if fitting >= len(missing):
                replaced_names[missing, tuple(unknown)] += calls
    return replaced_names


def _renamed(logged: _LoggedCalls) -> Iterator[Suggestion]:
    """Yield a suggestion for each set of names that calls have in place of parameters:
    an alias where one name clearly means one parameter, else ``other-names``.
    """
    before = {"input": logged.schema}
    for (missing, names), calls in logged.replaced_names.items():
        reason = f"{calls} calls have {_quoted(names)} and lack {_quoted(missing)}"
        path = ""
        if len(missing) == 1:
            path = f"/{missing[0]}"
        kind, after = "other-names", before
        if len(missing) == len(names) == 1:
            if _means(logged, names[0], missing[0]):
                kind, after = "alias", {**before, "aliases": {missing[0]: [names[0]]}}
        yield Suggestion(kind, logged.tool, path, calls, reason, before, after)


def _means(logged: _LoggedCalls, name: str, parameter: str) -> bool:
    """Return whether *name* means *parameter* in the calls that lack the parameter.

    The two are alike, and no other property is like the name; or no property is like
    it, *parameter* is the only required one, and nearly all calls that lack it have
    one unknown name. ``encoding`` does not mean a missing ``content`` if ``path`` is
    required too.
    """
    lacking = 0
    for (called, missing, sent), calls in logged.report.refused.items():
        if called != logged.tool:
            continue
        if parameter in missing:
            lacking += calls
        elif name in dict(sent):
            return False  # a call has both, or lacks another parameter
    properties = logged.schema.get("properties", {})
    similar = [other for other in properties if _is_like(name, other)]
    if similar:
        return similar == [parameter]
    if logged.schema.get("required") != [parameter]:
        return False
    renamed = 0
    for (missing, names), calls in logged.replaced_names.items():
        if missing == (parameter,) and len(names) == 1:
            renamed += calls
    return renamed >= NEARLY_ALL * lacking


def _quoted(names: Names) -> str:
    return ", ".join(map(repr, names))


def _is_like(name: str, other: str) -> bool:
    """Return whether two names share a word (``file_path``, ``path``), or one shortens
    the other (``cmd``, ``command``).
    """
    words = {word.lower() for word in _WORDS.findall(name)}
    other_words = {word.lower() for word in _WORDS.findall(other)}
    if words & other_words:
        return True
    short, long = sorted((name.lower(), other.lower()), key=len)
    letters = iter(long)
    return short[:1] == long[:1] and all(letter in letters for letter in short)


def _kinds(schema: Any) -> set[str]:
    if not isinstance(schema, dict):
        return set()
    declared = schema.get("type", [])
    kinds = {declared} if isinstance(declared, str) else set(declared)
    if "number" in kinds:
        kinds.add("integer")
    return kinds


def _changes(logged: _LoggedCalls) -> Iterator[Suggestion]:
    """Yield a suggestion for each place whose repairs and errors justify a schema
    change.
    """
    schema = logged.schema
    places: dict[str, Counter[str]] = {}
    for (called, path, rule), calls in logged.report.places.items():
        if called == logged.tool and path:
            # The items of an array count as one place.
            place = re.sub(r"/\d+(?=/|$)", "/0", path)
            places.setdefault(place, Counter())[rule] += calls
    for path, rules in places.items():
        part = _node(schema, parse_pointer(path))
        if part is None:
            continue
        for (missing, _), calls in logged.replaced_names.items():
            # A call that sent another name in its place did not leave the parameter out
            # (see `_renamed`).
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
    """Yield, for each change of *part* that *rules* justify: its kind, the number of
    calls, what these calls do, and the schema that replaces *part*.
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
    """Return the schema of the parameter at *keys*; ``None`` if it cannot be reached
    through ``properties`` and ``items`` alone.
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
    """Return *part* so that it accepts null too; its description and its default stay
    outside the union.
    """
    annotations: dict[str, Any] = {
        key: part[key] for key in ("description", "default") if key in part
    }
    branch = {key: value for key, value in part.items() if key not in annotations}
    return {**annotations, "anyOf": [branch, {"type": "null"}]}


def _options(part: dict[str, Any]) -> list[str]:
    """Return the only strings that *part* accepts, if it lists them as ``const``
    branches instead of an ``enum``.
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
