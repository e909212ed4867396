"""What is checked of a repaired whole: that each repair is needed, and that no other one alone would do.

``then``, ``dependentSchemas`` and the branches of a union judge one member by another. While ``kind`` is written
wrongly, a member that fits the right kind may not fit, and would be repaired though nothing is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skillruntime.contract.coercion.edit import Edit
from skillruntime.contract.coercion.keys import is_schema_echo, may_wrap, wrapped
from skillruntime.contract.coercion.repair import Repaired
from skillruntime.contract.coercion.scalars import is_same
from skillruntime.contract.coercion.state import Coercion, OverBudgetError
from skillruntime.contract.pointer import Path, format_pointer, parse_pointer

__all__ = ["fits_otherwise", "without_needless"]

MAX_COMPARED = 64
# How many objects of one member, one inside the other, are looked through for a wrapper.
MAX_WRAPPERS = 4


def without_needless(state: Coercion, sent: Any, result: Repaired) -> Repaired:
    """Return *result* with each member as it was *sent* that fits so beside the other repairs."""
    if len(result.repairs) < 2:
        return result
    replaced = {each.path for each in result.repairs}
    changes = list(_changes(sent, result.value, (), replaced))
    if not 0 < len(changes) <= MAX_COMPARED:
        return result
    try:
        needless = [change for change in changes if state.fits(_with(result.value, [change]), ())]
        value = _with(result.value, needless)
        # Where either of two repairs would do alone, both are kept.
        if not needless or not state.fits(value, ()):
            return result
    except OverBudgetError:
        return result
    places = [format_pointer(path) for path, _ in needless]
    kept = tuple(
        each for each in result.repairs if not any(each.path == at or each.path.startswith(at + "/") for at in places)
    )
    return Repaired(value, kept)


def fits_otherwise(state: Coercion, sent: Any, result: Repaired) -> bool:
    """Whether what was *sent* fits, and is not *result*, if one object around a repaired value is only a wrapper.

    ``{"input": {"data": {"n": 5}}}`` may lack ``input`` or ``data``; only one of the two is what the model added.
    """
    tried = set[Path]()
    try:
        for repair in result.repairs[:MAX_COMPARED]:
            for path, inside in _wrappers(sent, parse_pointer(repair.path)):
                if path in tried:
                    continue
                tried.add(path)
                other = _with(sent, [(path, inside)]) if path else inside
                if not is_same(other, result.value) and state.fits(other, ()):
                    return True
    except OverBudgetError:
        pass
    return False


def _wrappers(value: Any, path: tuple[str, ...]) -> Iterator[tuple[Path, Any]]:
    """Yield each object on the way to *path*, and below it, that may be a wrapper, with what it holds."""
    way: list[Any] = list(path)
    for depth in range(len(path) + MAX_WRAPPERS):
        if isinstance(value, dict) and (len(value) == 1 or is_schema_echo(value, {})):
            is_echo = is_schema_echo(value, {})
            key = "value" if is_echo else next(iter(value))
            if is_echo or may_wrap(key):
                inside = value[key] if is_echo else wrapped(value[key])
                yield tuple(way[:depth]), inside
                if isinstance(value[key], str) and isinstance(inside, dict):
                    yield (*way[:depth], key), inside  # `{"input": "{}"}` may be the entry `input` of a map
            way += [key] if depth == len(way) else []
        if depth >= len(way):
            return
        token = way[depth]
        if isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            way[depth] = int(token)
        elif not (isinstance(value, dict) and token in value):
            return
        value = value[way[depth]]


def _changes(sent: Any, value: Any, path: Path, replaced: set[str]) -> Iterator[tuple[Path, Any]]:
    """Yield where *value* differs from what was *sent*, with that: changed, or left out where no key was renamed.

    What was *replaced* as a whole, as a wrapper is by its inside, is one change: its members are others.
    """
    if sent is value:
        return
    if format_pointer(path) in replaced:
        if path and not is_same(sent, value):
            yield path, sent
    elif isinstance(sent, dict) and isinstance(value, dict):
        is_renamed = not value.keys() <= sent.keys()
        for key, member in sent.items():
            if key in value:
                yield from _changes(member, value[key], (*path, key), replaced)
            elif not is_renamed:
                yield (*path, key), member
    elif isinstance(sent, list) and isinstance(value, list) and len(sent) == len(value):
        for index, (item, other) in enumerate(zip(sent, value, strict=True)):
            yield from _changes(item, other, (*path, index), replaced)
    elif path and not is_same(sent, value):
        yield path, sent


def _with(value: Any, changes: list[tuple[Path, Any]]) -> Any:
    edit = Edit(value)
    for path, member in changes:
        edit.put(path, member)
    return edit.value
