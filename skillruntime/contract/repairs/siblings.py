"""Apply one repair to the rest of a call, or refuse the call: other keys may be
misspelt like a renamed key, and other texts may be in the quotes that a value lost.

The law: a model makes the same error in all members, so a repair is made in all that
need it, or in none. A key that fits is renamed only beside a key that does not, and a
text that fits is never changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillruntime.contract.repair_rules import KEY_NAME, UNKNOWN_KEY, rules_that
from skillruntime.contract.repairs.outcomes import Repaired
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.explanation import MISSPELT, QUOTED_TOO
from skillruntime.contract.schemas.misspelt_keys import misspelt_keys
from skillruntime.contract.schemas.names import outer_quote
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Edit,
    Path,
    ValuePath,
    value_at,
)
from skillruntime.contract.schemas.schema import Schema, Violation
from skillruntime.contract.schemas.subschemas import takes_undeclared_keys

# Rules that do not remove quotes from a text: a rule that only moves a value does not
# change the text.
_KEEPING_QUOTES = rules_that("moves") | {UNKNOWN_KEY}


def with_keys_alike(outcome: Repaired, schema: Schema) -> Repaired | None:
    """Return *outcome*, in which a key was renamed, with its other misspelt keys also
    renamed; return ``None`` if no key was renamed, or no other key can be.

    If only ``file_path`` is required, only the first key in ``{"filePath": "a",
    "dryRun": true}`` is a violation, but the second also means ``dry_run``.
    """
    if all(repair.rule != KEY_NAME for repair in outcome.repairs):
        return None
    new_names: dict[ValuePath, dict[str, str]] = {}
    repairs: list[Repair] = []
    for found in misspelt_keys(outcome.value, schema):
        if not found.is_clear:
            return None
        new_names.setdefault(found.path, {})[found.key] = found.name
        repairs.append(Repair(found.pointer, KEY_NAME, found.key, found.name))
    if not repairs:
        return None
    edit = Edit(outcome.value)
    # Inner objects first, because a renamed key is a part of the paths below it.
    for path in sorted(new_names, key=len, reverse=True):
        members = value_at(edit.value, path)
        renamed = _renamed(members, new_names[path])
        if path:
            edit.put(path, renamed)
        else:
            edit = Edit(renamed)
    return Repaired(edit.value, (*outcome.repairs, *repairs), outcome.is_disputed)


def _renamed(members: dict[str, Any], new_names: dict[str, str]) -> dict[str, Any]:
    return {new_names.get(key, key): member for key, member in members.items()}


def left_behind(outcome: Repaired, schema: Schema) -> list[Violation]:
    """Return the unrepaired parts of *outcome*, which fits, that may have the same
    error as a repaired part; a call with such a part is refused.
    """
    violations: list[Violation] = []
    if takes_undeclared_keys(schema.references):
        violations += _misspelt_keys_left(outcome, schema)
    violations += _quoted_texts_left(outcome)
    return violations


def _misspelt_keys_left(outcome: Repaired, schema: Schema) -> Iterator[Violation]:
    for found in misspelt_keys(outcome.value, schema):
        path = ValuePath((*found.path, found.key))
        content = value_at(outcome.value, path)
        names = (found.key, found.name)
        yield Violation(MISSPELT, path, WHOLE_SCHEMA, {}, content, names)


def _quoted_texts_left(outcome: Repaired) -> Iterator[Violation]:
    """Yield a violation for each text in the same quotes as a value that lost them."""
    unquoted_by_mark: dict[str, Repair] = {}
    for repair in outcome.repairs:
        mark = outer_quote(repair.before)
        if not mark or repair.rule in _KEEPING_QUOTES:
            continue
        if outer_quote(repair.after) != mark:
            unquoted_by_mark.setdefault(mark, repair)
    if not unquoted_by_mark:
        return
    for path, text in _texts(outcome.value):
        repair_of_other = unquoted_by_mark.get(outer_quote(text))
        if repair_of_other is not None:
            names = (repair_of_other.path,)
            yield Violation(QUOTED_TOO, path, WHOLE_SCHEMA, {}, text, names)


def _texts(value: Any) -> Iterator[tuple[ValuePath, str]]:
    """Yield the texts in *value*, each with its path."""
    pending: list[tuple[Path, Any]] = [((), value)]
    while pending:
        path, part = pending.pop()
        if isinstance(part, str):
            yield ValuePath(path), part
        elif isinstance(part, dict):
            pending += [((*path, name), member) for name, member in part.items()]
        elif isinstance(part, list):
            pending += [((*path, index), item) for index, item in enumerate(part)]
