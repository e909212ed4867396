"""Damages to the part of a contract that its schemas do not show, and whether
``skillruntime diff`` notices them.

A contract is made up: two or three versions, in which parameters are renamed, moved,
wrapped, converted, mapped and given defaults, with aliases. Then one thing is damaged
that old callers rely on: a migration is deleted, a step, a factor, a value, a
parameter of ``accepts``, the beginning of a range, an alias. A damage that no call of
an older shape can show is not drawn. It is *noticed* if the verdict is MINOR or more.
The undamaged contract, compared with itself, must be NONE.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

from skillruntime.compatibility import Bump, compare, try_old_calls

Document = dict[str, Any]
TEXT = {"type": "string"}
NUMBER = {"type": "integer", "minimum": 0, "maximum": 90}
LEVELS = ["low", "medium", "high"]


def _object(properties: Document, required: list[str]) -> Document:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def make_contract(random_: random.Random) -> Document:
    """Return a contract of version 2 or 3 with migrations from all before it."""
    old: Document = {"topic": dict(TEXT), "days": dict(NUMBER)}
    new: Document = {
        "topics": {"type": "array", "items": dict(TEXT)},
        "hours": {"type": "integer", "minimum": 0},
    }
    steps: list[Document] = [
        {"rename": {"from": "/topic", "to": "/topics"}},
        {"wrap": "/topics"},
        {"rename": {"from": "/days", "to": "/hours"}},
        {"convert": {"at": "/hours", "factor": random_.choice([24, 12, 60])}},
    ]
    if random_.random() < 0.7:
        old["level"] = {"enum": [1, 2, 3]}
        new["level"] = {"enum": LEVELS}
        values = [
            [number, word] for number, word in zip((1, 2, 3), LEVELS, strict=True)
        ]
        steps.append({"map": {"at": "/level", "values": values}})
    if random_.random() < 0.7:
        new["format"] = {"enum": ["brief", "full"], "default": "full"}
        steps.append({"set_default": {"at": "/format", "value": "brief"}})
    if random_.random() < 0.7:
        old["lang"] = dict(TEXT)
        new["options"] = _object({"lang": dict(TEXT)}, [])
        steps.append({"move": {"from": "/lang", "to": "/options/lang"}})
    migrations = [
        {"from": ">=1.0.0,<2.0.0", "to": "2.0.0", "accepts": _object(old, ["topic"])}
    ]
    migrations[0]["steps"] = steps
    document: Document = {
        "version": "2.0.0",
        "input": _object(new, ["topics"]),
        "aliases": {"topics": ["subjects", "themes"]},
        "migrations": migrations,
    }
    if random_.random() < 0.5:
        return document
    newest = copy.deepcopy(new)
    newest["limit"] = {"type": "integer"}
    newest["window"] = newest.pop("hours")
    migrations.append(
        {
            "to": "3.0.0",
            "accepts": _object(new, ["topics"]),
            "steps": [
                {"rename": {"from": "/hours", "to": "/window"}},
                {"set_default": {"at": "/limit", "value": 10}},
            ],
        }
    )
    return {**document, "version": "3.0.0", "input": _object(newest, ["topics"])}


def _migration(random_: random.Random, document: Document) -> Document:
    chosen: Document = random_.choice(document["migrations"])
    return chosen


def _without_migrations(random_: random.Random, document: Document) -> bool:
    del document["migrations"]
    return True


def _without_one(random_: random.Random, document: Document) -> bool:
    if len(document["migrations"]) < 2:
        return False
    del document["migrations"][0]
    return True


def _without_step(random_: random.Random, document: Document) -> bool:
    steps = _migration(random_, document)["steps"]
    step = random_.choice(steps)
    # A lone value is wrapped by the repair of the call too.
    if "wrap" in step:
        return False
    steps.remove(step)
    return True


def _other_factor(random_: random.Random, document: Document) -> bool:
    for migration in document["migrations"]:
        for step in migration["steps"]:
            if "factor" in step.get("convert", {}):
                step["convert"]["factor"] *= random_.choice([2, 10])
                return True
    return False


def _other_default(random_: random.Random, document: Document) -> bool:
    for migration in document["migrations"]:
        for step in migration["steps"]:
            if step.get("set_default", {}).get("value") == "brief":
                step["set_default"]["value"] = "full"
                return True
    return False


def _other_value(random_: random.Random, document: Document) -> bool:
    for migration in document["migrations"]:
        for step in migration["steps"]:
            if "map" in step:
                values = step["map"]["values"]
                values[0][1], values[2][1] = values[2][1], values[0][1]
                return True
    return False


def _lost_value(random_: random.Random, document: Document) -> bool:
    for migration in document["migrations"]:
        for step in migration["steps"]:
            if "map" in step:
                del step["map"]["values"][random_.randrange(3)]
                return True
    return False


def _forgotten_parameter(random_: random.Random, document: Document) -> bool:
    accepts = _migration(random_, document)["accepts"]
    del accepts["properties"][random_.choice(sorted(accepts["properties"]))]
    accepts["required"] = [
        name for name in accepts["required"] if name in accepts["properties"]
    ]
    return True


def _narrowed_parameter(random_: random.Random, document: Document) -> bool:
    accepts = document["migrations"][0]["accepts"]
    accepts["properties"]["days"]["maximum"] = random_.choice([7, 30, 89])
    return True


def _later_range(random_: random.Random, document: Document) -> bool:
    document["migrations"][0]["from"] = random_.choice([">=1.1.0,<2.0.0", "1.5.x"])
    return True


def _without_alias(random_: random.Random, document: Document) -> bool:
    names = document["aliases"]["topics"]
    names.remove(random_.choice(names))
    return True


def _other_alias(random_: random.Random, document: Document) -> bool:
    document["aliases"]["topics"][0] = "subject_list"
    return True


DAMAGES: tuple[Callable[[random.Random, Document], bool], ...] = (
    _without_migrations,
    _without_one,
    _without_step,
    _other_factor,
    _other_default,
    _other_value,
    _lost_value,
    _forgotten_parameter,
    _narrowed_parameter,
    _later_range,
    _without_alias,
    _other_alias,
)


def bump_of(old: Document, new: Document) -> Bump:
    """Return what ``skillruntime diff`` asks for."""
    verdict = compare(old, new)
    return try_old_calls(old, new, verdict).added_to(verdict).bump
