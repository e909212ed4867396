"""Follow the advice of a refusal literally, as a model does that reads nothing else."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from skillruntime.errors import SkillError
from tests.contract.generated import make_value

_MISSING = object()
_QUOTED = r'"(?:[^"\\]|\\.)*"'


def followed(
    schema: dict[str, Any], value: Any, errors: list[SkillError], random: Random
) -> Any:
    """Return *value* with the next step of each of *errors* taken, or ``None`` where
    one cannot be taken literally.
    """
    result = copy.deepcopy(value)
    # What is deeper first: a step may remove what is around it.
    for error in sorted(errors, key=lambda each: -_path(each).count("/")):
        path = _path(error)
        if "…" in path:
            return None
        tokens = [
            token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]
        ]
        action = _spelt_out(error)
        result = _taken(schema, result, tokens, action, random)
        if result is None:
            return None
    return result


def _spelt_out(error: SkillError) -> str:
    """Return the action of *error*, with the first of the choices that its message
    lists.
    """
    action = error.suggested_action or ""
    if action == "Send one of them":
        return "Send " + error.message.partition(" is not one of ")[2]
    if action == "Send one of these":
        choices = error.message.partition(" is none of: ")[2]
        return "Send " + choices.partition("; ")[0]
    return action


def kind_of(action: str) -> str:
    """Return the kind of an action: its words, without what it quotes."""
    action = re.sub(_QUOTED, "Q", action)
    action = re.sub(r"-?\d+(\.\d+)?", "N", action)
    return re.sub(r"Q(, Q)+( and N more)?", "Q", action)[:60]


def _path(error: SkillError) -> str:
    return str((error.details or {}).get("path", ""))


def _taken(
    schema: dict[str, Any], value: Any, tokens: list[str], action: str, random: Random
) -> Any:
    near = re.match(rf"Did you mean ({_QUOTED})\?", action)
    if near:
        name = json.loads(near[1])
        if tokens and _is_key(value, tokens, schema, name):
            moved = _get(value, tokens)
            value = _without(value, tokens)
            return _with(value, [*tokens[:-1], name], moved)
        return _with(value, tokens, name)
    added = re.match(
        rf"Add ({_QUOTED})(?:: (.*?))?(?: \(you sent ({_QUOTED})\))?$", action
    )
    if added:
        sent_as = [*tokens[:-1], json.loads(added[3])] if added[3] else []
        if added[2]:
            made = _made(schema, tokens, added[2], random, _MISSING)
        elif sent_as:
            made = copy.deepcopy(_get(value, sent_as))
        else:
            made = _any(schema, tokens, random)
        if made is _MISSING:
            return None
        if added[3]:
            value = _without(value, [*tokens[:-1], json.loads(added[3])])
        return _with(value, tokens, made)
    if action.startswith("Leave out"):
        names = [json.loads(name) for name in re.findall(_QUOTED, action)]
        left_out = names[1:] if "but one" in action else names[:1]
        for name in left_out:
            value = _without(value, [*tokens, name])
        return value
    if action == "Send each item once":
        items = _get(value, tokens)
        once = [item for index, item in enumerate(items) if item not in items[:index]]
        return _with(value, tokens, once)
    listed = re.match(r"Send an array with .* of these items: (.*)", action)
    if listed:
        item = _made(schema, tokens, listed[1], random, _MISSING)
        return None if item is _MISSING else _with(value, tokens, [item])
    if action.startswith("Leave it out"):
        return _without(value, tokens)
    inner = re.match(rf"Send its members directly, without ({_QUOTED})", action)
    if inner:
        members = _get(value, tokens)
        value = _without(value, tokens)
        return _with(value, tokens[:-1], {**(_get(value, tokens[:-1])), **members})
    sent = re.match(r"Send (.*?)(?:, as one JSON text)?$", action)
    if sent:
        made = _made(schema, tokens, sent[1], random, _get(value, tokens))
        return None if made is _MISSING else _with(value, tokens, made)
    return None


def _is_key(value: Any, tokens: list[str], schema: dict[str, Any], name: str) -> bool:
    parents = [*described(schema, tokens[:-1])]
    own = any(tokens[-1] in each.get("properties", {}) for each in parents)
    return not own or _get(value, tokens) is _MISSING


def described(schema: dict[str, Any], tokens: list[str]) -> Iterator[dict[str, Any]]:
    """Yield every subschema that may describe the part at *tokens*."""
    places = [schema]
    for token in tokens:
        below: list[Any] = []
        for part in _expanded(schema, places):
            if token in part.get("properties", {}):
                below.append(part["properties"][token])
                continue
            for pattern, rest in part.get("patternProperties", {}).items():
                if re.search(pattern, token):
                    below.append(rest)
            if isinstance(part.get("additionalProperties"), dict):
                below.append(part["additionalProperties"])
            if token.isdecimal():
                prefix = part.get("prefixItems", [])
                if int(token) < len(prefix):
                    below.append(prefix[int(token)])
                elif isinstance(part.get("items"), dict):
                    below.append(part["items"])
        places = below
    yield from _expanded(schema, places)


def _expanded(root: dict[str, Any], places: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    pending = list(places)
    while pending and len(found) < 60:
        part = pending.pop(0)
        if not isinstance(part, dict):
            continue
        found.append(part)
        reference = part.get("$ref")
        if isinstance(reference, str):
            _, keyword, name = reference.split("/", 2)
            pending.append(root.get(keyword, {}).get(name))
        for keyword in ("allOf", "anyOf", "oneOf"):
            pending += part.get(keyword, [])
    return found


_TYPES = {
    "a string": str,
    "an integer": int,
    "a number": (int, float),
    "a boolean": bool,
    "an array": list,
    "an object": dict,
    "null": type(None),
}


def _made(
    schema: dict[str, Any], tokens: list[str], words: str, random: Random, now: Any
) -> Any:
    """Return a value that *words* describe, as the schema of the place takes it."""
    if words.startswith("{"):
        return json.loads(words)
    choice = re.match(
        rf"(?:one of )?({_QUOTED}|-?\d[\d.]*|true|false|null)(?:,|$| and)", words
    )
    if choice:
        return json.loads(choice[1])
    example = re.match(r"a value like (.*)$", words)
    if example:
        try:
            return json.loads(example[1])
        except ValueError:
            return _MISSING
    described_here = [*described(schema, tokens)]
    members = re.match(r"an object with (.*)$", words)
    if members:
        result: dict[str, Any] = {}
        listed = members[1].split(", each ")[0].partition(", without ")[0]
        if listed.startswith("any of"):
            listed = re.findall(_QUOTED, listed)[0]
        if " or " in re.sub(_QUOTED, "", listed):
            listed = re.findall(rf"{_QUOTED}[^\"]*?(?= or )", listed)[0]
        for name, const in re.findall(rf"({_QUOTED})(?: ({_QUOTED}|\d+))?", listed):
            key = json.loads(name)
            if const:
                result[key] = json.loads(const)
            elif isinstance(now, dict) and key in now:
                result[key] = now[key]
            else:
                result[key] = _any(schema, [*tokens, key], random)
        return result
    kinds = [
        kind for kind in _TYPES if words.startswith(kind) or f" or {kind}" in words
    ]
    for part in described_here:
        for _ in range(30):
            made = make_value(random, part, schema.get("$defs", {}))
            for kind in kinds:
                is_bool = isinstance(made, bool)
                if isinstance(made, _TYPES[kind]) and is_bool == (kind == "a boolean"):
                    return made
    return _MISSING


def _any(schema: dict[str, Any], tokens: list[str], random: Random) -> Any:
    for part in described(schema, tokens):
        if part.keys() & {"type", "enum", "const", "anyOf", "oneOf", "$ref"}:
            return make_value(random, part, schema.get("$defs", {}))
    return "x"


def _get(value: Any, tokens: list[str]) -> Any:
    for token in tokens:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return _MISSING
    return value


def _with(value: Any, tokens: list[str], part: Any) -> Any:
    if not tokens:
        return part
    *above, last = tokens
    parent = _get(value, above)
    if isinstance(parent, dict):
        parent[last] = part
    elif isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
        parent[int(last)] = part
    return value


def _without(value: Any, tokens: list[str]) -> Any:
    parent = _get(value, tokens[:-1])
    if tokens and isinstance(parent, dict):
        parent.pop(tokens[-1], None)
    if tokens and isinstance(parent, list) and int(tokens[-1]) < len(parent):
        parent.pop(int(tokens[-1]))
    return value
