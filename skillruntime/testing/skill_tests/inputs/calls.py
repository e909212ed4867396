"""Generate the calls that test a callable from its contract. Valid calls are run; calls
that the contract must refuse, and malformed calls that it may repair, are only given to
the contract.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from copy import copy
from itertools import islice
from typing import TYPE_CHECKING, Any

from skillruntime.compatibility.normal_form import NotComparable, closed, normal_form
from skillruntime.compatibility.old_calls import try_old_calls
from skillruntime.compatibility.sampling import samples
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.subschemas import ABSENT
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import is_file_name, made_file
from skillruntime.testing.skill_tests.inputs.shown_calls import shown_examples

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = [
    "malformed_calls",
    "old_calls",
    "refused_calls",
    "resolved_schema",
    "sampling_schema",
    "valid_calls",
]

_QUOTED = re.compile(r"'([^'\n]{1,100})'|\"([^\"\n]{1,100})\"|`([^`\n]{1,100})`")
_OBJECTS_OF_SCHEMAS = ("properties", "patternProperties")
_SCHEMAS = ("items", "additionalProperties", "contains")
_ARRAYS_OF_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_LIST = re.compile(r"\w{1,20}(?:(?:,| or| and|/) ?(?:or )?\w{1,20})+")
_LIST_MEMBER = re.compile(r"\w+")
_NUMBERS = frozenset({"integer", "number"})
_MOST_OF_A_PART = 12
_LONGEST_MADE = 5_000
_FORMS_OF_TEXTS = frozenset({"enum", "pattern", "format"})
_HARD_TEXTS = ("", "é", "Łódź a", "北京")
"""No text, and letters of Latin-1, of the rest of Latin, and of another script."""

_MOST_NESTED = 2


def valid_calls(
    contract: Contract,
    instructions: str,
    fixture_paths: Collection[str],
    base: dict[str, Any] | None = None,
) -> list[Case]:
    """Return calls that *contract* accepts unchanged, the most telling first: shown
    examples, the smallest call, each parameter alone, members, bounds, all together.
    *base* replaces the smallest call, to which the others add one parameter.

    >>> from skillruntime.contract import Contract
    >>> page = {"type": "integer", "minimum": 1, "maximum": 9}
    >>> contract = Contract.from_schema({"properties": {"page": page}})
    >>> [(case.kind, case.arguments) for case in valid_calls(contract, "", [])][:3]
    [('least', {}), ('bound', {'page': 1}), ('bound', {'page': 9})]
    """
    schema = sampling_schema(contract, tuple(sorted(fixture_paths)))
    found = [*shown_examples(contract, instructions, schema.get("properties", {}))]
    if base is None:
        base = _smallest(contract, schema, found)
    if base is None:
        return _distinct(found)
    found.append(Case(base, "least", is_invented=_is_invented(base, schema)))
    found += _with_parameters(contract, schema, base)
    found += _with_nested_texts(base)
    found += _all_together(schema, base)
    return _distinct(case for case in found if contract.input.is_valid(case.arguments))


def refused_calls(contract: Contract, base: dict[str, Any]) -> list[Case]:
    """Return calls that *contract* must not accept unchanged: *base* with one fault.

    >>> from skillruntime.contract import Contract
    >>> part = {"type": "string", "maxLength": 2}
    >>> schema = {"required": ["a"], "properties": {"a": part}}
    >>> contract = Contract.from_schema(schema)
    >>> [(case.kind, case.arguments) for case in refused_calls(contract, {"a": "b"})]
    [('missing', {}), ('beyond', {'a': 'aaa'})]
    """
    schema = resolved_schema(contract)
    properties = schema.get("properties", {})
    found = []
    for name in schema.get("required", ()):
        rest = {key: value for key, value in base.items() if key != name}
        found.append(Case(rest, "missing", parameter=name))
    for name, part in properties.items():
        for value in _beyond(part):
            found.append(Case({**base, name: value}, "beyond", parameter=name))
    found.append(Case({**base, "no_such_parameter": 1}, "unknown"))
    return [case for case in found if not contract.input.is_valid(case.arguments)]


def malformed_calls(contract: Contract, base: dict[str, Any]) -> list[tuple[Any, str]]:
    """Return *base* with errors that models make, each with the name of its error. All
    of them mean *base*, so the accepted arguments must equal *base*.
    """
    found: list[tuple[Any, str]] = []
    for name, value in base.items():
        for changed, error in _misspelt_values(value):
            if not contract.input.is_valid({**base, name: changed}):
                found.append(({**base, name: changed}, error))
        other_name = _camel_case(name)
        if other_name != name:
            renamed = {key: item for key, item in base.items() if key != name}
            renamed[other_name] = value
            if not contract.input.is_valid(renamed):
                found.append((renamed, "another spelling of the name"))
    text = json.dumps(base, ensure_ascii=False)
    if base:
        found.append((f"{text[:-1]},}}", "a trailing comma"))
    found.append((f"```json\n{text}\n```", "a code block"))
    return found


def old_calls(contract: Contract) -> Iterator[tuple[Case, str]]:
    """Yield calls of older versions that *contract* should migrate, each with the
    reason for a refusal, empty if it is accepted.
    """
    if not contract.migrations:
        return
    seen: set[str | None] = set()
    for call in try_old_calls(contract, contract).calls:
        if not call.is_of_older_shape:
            continue
        if call.is_taken and call.version in seen:
            continue
        seen.add(call.version)
        yield Case(call.sent, "old", call.version, is_invented=True), call.refusal


def resolved_schema(contract: Contract) -> dict[str, Any]:
    """Return the input schema without references, as exactly as samples need it."""
    document = contract.input.document
    try:
        schema = closed(normal_form(document))
    except NotComparable:
        schema = document
    if not isinstance(schema, dict):
        return {}
    return schema


def sampling_schema(contract: Contract, fixtures: tuple[str, ...]) -> dict[str, Any]:
    """Return the schema to draw values from: values quoted in descriptions become
    examples, and paths get names of possible files.
    """
    schema = dict(_with_hints(resolved_schema(contract), fixtures))
    _add_listed_kinds(schema, str(contract.description or ""))
    return schema


def _add_listed_kinds(schema: dict[str, Any], description: str) -> None:
    """Add to the paths of *schema* files of the kinds that the callable's description
    lists together with a kind that a path has.
    """
    for part in schema.get("properties", {}).values():
        if isinstance(part, dict) and part.get("format") == "path":
            names = part.get("enum", [])
            suffixes = {name.rpartition(".")[2].lower() for name in names}
            kinds = _kinds_beside(suffixes, description)
            part["enum"] = [*names, *(f"input.{kind}" for kind in kinds)]


def _with_hints(node: Any, fixtures: tuple[str, ...]) -> Any:
    if not isinstance(node, dict):
        return node
    found: dict[str, Any] = {}
    for keyword, value in node.items():
        found[keyword] = _member_with_hints(keyword, value, fixtures)
    if "enum" in found or "const" in found:
        return found
    examples = list(found.get("examples", ()))
    if "string" in _types(found):
        examples += _quoted_texts(found)
    if found.get("format") == "path":
        return {**found, "enum": _paths(found, examples, fixtures)}
    if examples:
        found["examples"] = examples
    return found


def _member_with_hints(keyword: str, value: Any, fixtures: tuple[str, ...]) -> Any:
    """Return the value of *keyword* with hints in the schemas that it contains."""
    if keyword in _OBJECTS_OF_SCHEMAS and isinstance(value, dict):
        return {name: _with_hints(part, fixtures) for name, part in value.items()}
    if keyword in _SCHEMAS:
        return _with_hints(value, fixtures)
    if keyword in _ARRAYS_OF_SCHEMAS:
        return [_with_hints(part, fixtures) for part in value]
    return value


def _types(node: Mapping[str, Any]) -> list[str]:
    types = node.get("type", [])
    if isinstance(types, str):
        return [types]
    return list(types)


def _quoted_texts(node: Mapping[str, Any]) -> Iterator[str]:
    for match in _QUOTED.finditer(str(node.get("description", ""))):
        yield next(text for text in match.groups() if text is not None)


def _paths(
    node: Mapping[str, Any], examples: list[Any], fixtures: tuple[str, ...]
) -> list[str]:
    """Return file names for a path: fixtures of the kind that the examples show, else
    the examples, else a text file; and one of each kind that is listed beside the kind
    of an example.
    """
    names = [text for text in examples if isinstance(text, str) and is_file_name(text)]
    suffixes = {name.rpartition(".")[2].lower() for name in names}
    for text in _quoted_texts(node):
        if re.fullmatch(r"\.[a-z0-9]{1,5}", text):
            suffixes.add(text[1:])
            names.append(f"input{text}")
    fitting = [
        name
        for name in fixtures
        if not suffixes or name.rpartition(".")[2].lower() in suffixes
    ]
    for kind in _kinds_beside(suffixes, str(node.get("description", ""))):
        names.append(f"input.{kind}")
    return [*fitting, *dict.fromkeys(names)] or ["input.txt"]


def _kinds_beside(suffixes: set[str], description: str) -> Iterator[str]:
    """Yield the kinds of files that *description* lists together with one of
    *suffixes*.

    >>> list(_kinds_beside({"csv"}, "A data file (CSV, JSON or Parquet) to read"))
    ['json']
    """
    for listed in _LIST.findall(description.lower()):
        kinds = _LIST_MEMBER.findall(listed)
        if suffixes.isdisjoint(kinds):
            continue
        for kind in kinds:
            if kind not in suffixes and made_file(f"input.{kind}") is not None:
                yield kind


def _smallest(
    contract: Contract, schema: dict[str, Any], examples: list[Case]
) -> dict[str, Any] | None:
    """Return the smallest valid call found, with shown values if there are any."""
    required = schema.get("required", ())
    properties = schema.get("properties", {})
    for case in examples:
        least = {name: case.arguments[name] for name in required}
        if contract.input.is_valid(least):
            return least
    base = {}
    for name in required:
        values = samples(properties.get(name, True), _MOST_OF_A_PART)
        preferred = [value for value in values if value not in ("", [], {})]
        base[name] = next(iter([*preferred, *values]), None)
    if contract.input.is_valid(base):
        return base
    for value in samples(schema, 50):
        if isinstance(value, dict) and contract.input.is_valid(value):
            return value
    return None


def _with_parameters(
    contract: Contract, schema: dict[str, Any], base: dict[str, Any]
) -> Iterator[Case]:
    """Yield *base* with each parameter at each of its values, taking one value of every
    parameter in turn, so that a lack of time only costs further values.
    """
    pending = []
    for name, part in schema.get("properties", {}).items():
        is_invented = _is_invented(base, schema)
        pending.append(_values(name, part, base, is_invented=is_invented))
    while pending:
        going = []
        for values in pending:
            for case in islice(values, 1):
                yield case
                going.append(values)
        pending = going


def _with_nested_texts(base: dict[str, Any]) -> Iterator[Case]:
    """Yield *base* with a hard text in place of each text inside its objects and
    arrays, such as the value of a field of a form.
    """
    for name, value in base.items():
        if isinstance(value, dict):
            places: list[Any] = [*value]
        elif isinstance(value, list):
            places = [*range(len(value))]
        else:
            continue
        texts = [place for place in places if isinstance(value[place], str)]
        for place in texts[:_MOST_NESTED]:
            for text in _HARD_TEXTS[1:]:
                changed = copy(value)
                changed[place] = text
                yield Case({**base, name: changed}, "text", None, name, True)


def _values(
    name: str, part: Any, base: dict[str, Any], *, is_invented: bool
) -> Iterator[Case]:
    """Yield *base* with the parameter *name* set to each value that is worth a call:
    the bounds, values that are shown or likely, and hard texts.
    """
    if not isinstance(part, dict):
        return
    for value in _bounds(part):
        yield Case({**base, name: value}, "bound", None, name, is_invented)
    kind = "option"
    for value in _likely_values(part):
        if name not in base and is_same(value, part.get("default", ABSENT)):
            continue  # the same call as without the parameter
        is_made_up = is_invented or _is_invented(value, part)
        yield Case({**base, name: value}, kind, None, name, is_made_up)
        kind = "member"
    for text in _hard_texts(part):
        yield Case({**base, name: text}, "text", None, name, True)


def _likely_values(part: dict[str, Any]) -> list[Any]:
    """Return the values that *part* shows, and others that are like them."""
    values = samples(part, _MOST_OF_A_PART)
    if _is_free_text(part):
        return [*part.get("examples", ()), *values[:1]]
    return values


def _hard_texts(part: dict[str, Any]) -> list[str]:
    if not _is_free_text(part):
        return []
    longest = part.get("maxLength", _LONGEST_MADE)
    if "maxLength" in part and longest <= _LONGEST_MADE:
        return [*_HARD_TEXTS, "a" * longest]
    return [*_HARD_TEXTS]


def _is_free_text(part: Mapping[str, Any]) -> bool:
    """Return whether *part* is a text of any form."""
    return _types(part) == ["string"] and not part.keys() & _FORMS_OF_TEXTS


def _bounds(part: Mapping[str, Any]) -> list[Any]:
    """Return the least and the greatest number that *part* declares and admits."""
    if not _NUMBERS.intersection(_types(part)) or "enum" in part:
        return []
    numbers = [*filter(_is_number, samples({**part, "examples": []}, 20))]
    if not numbers:
        return []
    found = []
    if part.keys() & {"minimum", "exclusiveMinimum"}:
        found.append(min(numbers))
    if part.keys() & {"maximum", "exclusiveMaximum"}:
        found.append(max(numbers))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _all_together(schema: dict[str, Any], base: dict[str, Any]) -> Iterator[Case]:
    """Yield a call with every parameter, and one with the shown parameters."""
    properties = schema.get("properties", {})
    everything = dict(base)
    for name, part in properties.items():
        if name not in base:
            values = samples(part, 2)
            if values:
                everything[name] = values[0]
    yield Case(everything, "all", is_invented=_is_invented(everything, schema))


def _is_invented(value: Any, schema: Any) -> bool:
    """Return whether *value* has a text or a number that its schema does not show."""
    if not isinstance(schema, dict):
        schema = {}
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        return any(_is_invented(item, parts.get(key)) for key, item in value.items())
    if value in schema.get("examples", ()):
        return False
    if isinstance(value, list):
        return any(_is_invented(item, schema.get("items")) for item in value)
    if isinstance(value, bool) or value is None:
        return False
    if _is_number(value) and schema.keys() & {"minimum", "maximum"}:
        return False
    known = [*schema.get("enum", ()), schema.get("default"), schema.get("const")]
    return value not in known


def _beyond(part: Any) -> Iterator[Any]:
    """Yield values just outside the bounds of *part*."""
    if not isinstance(part, dict):
        return
    if isinstance(part.get("minimum"), int | float):
        yield part["minimum"] - 1
    if isinstance(part.get("maximum"), int | float):
        yield part["maximum"] + 1
    if part.get("minLength", 0) > 0:
        yield "a" * (part["minLength"] - 1)
    if part.get("maxLength", _LONGEST_MADE) < _LONGEST_MADE:
        yield "a" * (part["maxLength"] + 1)
    if "enum" in part:
        yield "no-such-member"
    if _NUMBERS.intersection(_types(part)) and "string" not in _types(part):
        yield "no-such-number"
    elif "string" not in _types(part) and "array" not in _types(part):
        yield {"no_such_member": []}


def _misspelt_values(value: Any) -> Iterator[tuple[Any, str]]:
    match value:
        case bool():
            yield str(value), "a boolean as a text"
        case int() | float():
            yield str(value), "a number as a text"
        case list() | dict():
            yield json.dumps(value, ensure_ascii=False), "a container as a text"
        case str() if value:
            yield [value], "a text in an array"
    match value:
        case [item] if _is_scalar(item):
            yield item, "an item without its array"


def _is_scalar(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _camel_case(name: str) -> str:
    """Return *name* in another spelling.

    >>> _camel_case("max_articles")
    'maxArticles'
    """
    head, *words = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in words)


def _distinct(cases: Any) -> list[Case]:
    found: dict[str, Case] = {}
    for case in cases:
        key = json.dumps([case.arguments, case.version], sort_keys=True)
        found.setdefault(key, case)
    return list(found.values())
