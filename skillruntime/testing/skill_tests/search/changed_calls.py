"""Change a call in one place: to a value with which the script compares its input, to a
file of another form, to another value that the schema admits.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, islice
from typing import Any

from skillruntime.compatibility.sampling import in_turn, samples
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.file_variants import (
    directory_variants,
    file_variants,
    file_with_all,
)
from skillruntime.testing.skill_tests.inputs.made_files import (
    is_file_name,
    names_in_file,
    texts_of,
)
from skillruntime.testing.skill_tests.inputs.script_literals import Literals
from skillruntime.testing.skill_tests.runs import Run

__all__ = [
    "Known",
    "kinds_of_files",
    "with_a_change",
    "with_another_file",
    "with_both",
    "with_literals",
    "with_pairs_of_members",
    "with_paths",
]

_OF_A_SCHEMA = 8
_OF_A_TEXT = 2
_MOST_TEXTS = 12
_MOST_NUMBERS = 8
_MOST_KINDS = 4
_MOST_MEMBERS = 12


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a script: the schema of its arguments, the literals in its
    source, and a JSON document with the members that it reads.
    """

    schema: Mapping[str, Any]
    literals: Literals
    document: bytes | None
    files: dict[str, Mapping[str, bytes]]
    """The files of each name that the changed calls use for a file or directory. A name
    keeps its files: a recorded case finds them under this name.
    """

    @property
    def parameters(self) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """The parameters of which the schema says something."""
        for name, part in self.schema.get("properties", {}).items():
            if isinstance(part, dict):
                yield name, part


def kinds_of_files(base: Run) -> Iterator[str]:
    """Yield the suffixes of the files that *base* reads."""
    for path in texts_of(base.case.arguments):
        if is_file_name(path) and path in base.files:
            yield _suffix_of(path)


def with_another_file(known: Known, base: Run) -> Iterator[Case]:
    """Yield *base* with another file in place of each file that it reads, or with a
    part of its directory.
    """
    pending = []
    for path in dict.fromkeys(texts_of(base.case.arguments)):
        if is_file_name(path):
            # A variant has no variants of its own, and an output has no content.
            if path in base.files and path not in known.files:
                pending.append(
                    _with_files(known, base, path, _variants(known, base, path))
                )
        elif path in known.files:
            directories = directory_variants(known.literals, known.document)
            pending.append(_with_files(known, base, path, directories))
    yield from in_turn(pending)


def _variants(
    known: Known, base: Run, path: str
) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Yield the variants of the file at *path*, each under a name that has the file's:
    two files of a call have different columns, for example.
    """
    stem, suffix = os.path.splitext(path)  # noqa: PTH122
    stem = stem.replace("/", "_")
    variants = file_variants(
        suffix.lower(), base.files[path], known.literals, known.document
    )
    for kind, data in variants:
        name = f"{stem}-{kind}{suffix.lower()}"
        yield name, {name: data}


def _with_files(
    known: Known, base: Run, path: str, variants: Iterator[tuple[str, dict[str, bytes]]]
) -> Iterator[Case]:
    for name, files in variants:
        known.files.setdefault(name, files)
        yield _case(_replaced(base.case.arguments, path, name))


def _replaced(value: Any, text: str, other: str) -> Any:
    """Return *value* with *other* in place of each *text*."""
    if value == text:
        return other
    if isinstance(value, list):
        return [_replaced(item, text, other) for item in value]
    if isinstance(value, dict):
        return {key: _replaced(item, text, other) for key, item in value.items()}
    return value


def with_paths(known: Known, base: Run) -> Iterator[Case]:
    """Yield *base* with a directory of all that the script looks for, and with files of
    the kinds that it knows, in place of each text.
    """
    directories = directory_variants(known.literals, known.document)
    paths = dict(islice(directories, 1))
    suffixes = [text for text in known.literals.texts if _is_suffix(text)]
    for suffix in suffixes[:_MOST_KINDS]:
        name = f"input{suffix}"
        paths[name] = {name: file_with_all(suffix, known.literals, known.document)}
    for path, files in paths.items():
        known.files.setdefault(path, files)
        for name, part in known.parameters:
            if part.get("type") == "string" and "enum" not in part:
                yield _case({**base.case.arguments, name: path}, name)
            elif _is_of_texts(part):
                yield _case({**base.case.arguments, name: [path]}, name)


def with_literals(known: Known, base: Run) -> Iterator[Case]:
    """Yield *base* with a value that the script compares with, in place of each text
    and number.
    """
    pending = []
    for name, part in known.parameters:
        values = _literals_for(name, part, known.literals)
        pending.append(_with_values(base, name, values))
    yield from in_turn(pending)


def _with_values(base: Run, name: str, values: Sequence[Any]) -> Iterator[Case]:
    for value in values:
        yield _case({**base.case.arguments, name: value}, name)


def _literals_for(
    name: str, part: Mapping[str, Any], literals: Literals
) -> Sequence[Any]:
    """Return the values for the parameter *name*: those that stand beside its name in
    the script first.
    """
    if "enum" in part or part.get("format") == "path":
        return []
    beside = literals.beside.get(name, [])
    match part.get("type"):
        case "string":
            found = [*beside, literals.as_text()]
            found += literals.patterns[:_MOST_TEXTS]
            found += literals.texts[:_MOST_TEXTS]
            lengths = literals.lengths[:_MOST_NUMBERS]
            return [*found, *("a" * length for length in lengths)]
        case "integer" | "number":
            return [*_numbers_near(beside), *_numbers_near(literals.numbers)]
        case "array" if _is_of_texts(part):
            return [[text] for text in [*beside, *literals.texts[:_MOST_TEXTS]]]
    return []


def _is_of_texts(part: Mapping[str, Any]) -> bool:
    items = part.get("items")
    return isinstance(items, dict) and items.get("type") == "string"


def _numbers_near(values: Sequence[Any]) -> list[float]:
    """Return each number of *values* and the next one: one of both is beyond the
    bound.
    """
    found = []
    for value in values[:_MOST_NUMBERS]:
        if isinstance(value, int | float):
            found += [value, value + 1]
    return found


def with_a_change(known: Known, base: Run) -> Iterator[Case]:
    """Yield *base* with one part anywhere in its arguments replaced, added or left
    out.
    """
    names = []
    for path, data in base.files.items():
        names += names_in_file(path, data)
    beside = {**known.literals.beside, "": names[:_MOST_TEXTS]}
    for arguments in _changed(base.case.arguments, known.schema, beside, ""):
        yield _case(arguments)


def _changed(
    value: Any, schema: Any, beside: Mapping[str, Sequence[Any]], name: str
) -> Iterator[Any]:
    """Yield changes of *value*, the member *name* of an object. *beside* are values by
    the name of a member, and under an empty name those for any text.
    """
    if not isinstance(schema, dict):
        return
    if isinstance(value, dict):
        yield from _changed_object(value, schema, beside)
    elif isinstance(value, list):
        items = schema.get("items", {})
        for place, item in enumerate(value[:2]):
            for other in _changed(item, items, beside, name):
                yield [*value[:place], other, *value[place + 1 :]]
        for other in samples(items, _OF_A_SCHEMA):
            yield [*value, other]
    else:
        yield from beside.get(name, [])
        if isinstance(value, str) and "enum" not in schema:
            yield from beside[""]
            yield from samples(schema, _OF_A_TEXT)
        else:
            yield from samples(schema, _OF_A_SCHEMA)


def _changed_object(
    value: dict[str, Any], schema: dict[str, Any], beside: Mapping[str, Sequence[Any]]
) -> Iterator[dict[str, Any]]:
    pending = []
    for key, part in schema.get("properties", {}).items():
        if key in value:
            parts = _changed(value[key], part, beside, key)
        else:
            parts = iter(samples(part, _OF_A_SCHEMA))
        pending.append(_with_member(value, key, parts))
    yield from in_turn(pending)
    for key in value:
        yield {other: item for other, item in value.items() if other != key}


def _with_member(
    value: dict[str, Any], key: str, parts: Iterator[Any]
) -> Iterator[dict[str, Any]]:
    for part in parts:
        yield {**value, key: part}


def with_both(base: Run, others: Sequence[Run]) -> Iterator[Case]:
    """Yield *base* together with the arguments of each other run: what one option
    changes may need another one.
    """
    for other in others:
        yield _case({**base.case.arguments, **other.case.arguments})
        yield _case({**other.case.arguments, **base.case.arguments})


def with_pairs_of_members(known: Known, base: Run) -> Iterator[Case]:
    """Yield *base* with members of two enums together, equal positions first: two
    enums of units, for example, must fit each other.
    """
    enums = []
    for name, part in known.parameters:
        members = part.get("enum")
        if isinstance(members, list):
            enums.append((name, members[:_MOST_MEMBERS]))
    pending = []
    for left, right in combinations(enums, 2):
        pending.append(_with_pairs(base, left, right))
    yield from in_turn(pending)


def _with_pairs(
    base: Run, left: tuple[str, list[Any]], right: tuple[str, list[Any]]
) -> Iterator[Case]:
    for shift in range(len(right[1])):
        for place in _spread(len(left[1])):
            other = right[1][(place + shift) % len(right[1])]
            yield _case(
                {**base.case.arguments, left[0]: left[1][place], right[0]: other}
            )


def _spread(number: int) -> list[int]:
    """Return the numbers below *number*, the distant ones first: members side by side,
    such as units of length, often mean the same to a script.

    >>> _spread(6)
    [0, 3, 1, 2, 4, 5]
    """
    found: dict[int, None] = {}
    step = number
    while step:
        found.update(dict.fromkeys(range(0, number, step)))
        step //= 2
    return [*found]


def _suffix_of(path: str) -> str:
    return os.path.splitext(path)[1].lower()  # noqa: PTH122


def _is_suffix(text: str) -> bool:
    return text.startswith(".") and is_file_name(f"input{text}")


def _case(arguments: dict[str, Any], name: str | None = None) -> Case:
    return Case(arguments, "line", None, name, is_invented=True)
