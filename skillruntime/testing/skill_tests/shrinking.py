"""Shrink a failing call: drop members, and make values smaller."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Any

__all__ = ["shrink"]

_MOST_TRIES = 20


async def shrink(
    arguments: dict[str, Any],
    fails: Callable[[dict[str, Any]], Awaitable[bool]],
    *,
    most: int = _MOST_TRIES,
) -> dict[str, Any]:
    """Return the smallest object like *arguments* for which *fails* holds, found within
    *most* tries.
    """
    smallest = arguments
    left = most
    has_improved = True
    while has_improved:
        has_improved = False
        for smaller in _smaller_objects(smallest):
            if left == 0:
                return smallest
            left -= 1
            if await fails(smaller):
                smallest = smaller
                has_improved = True
                break
    return smallest


def _smaller_objects(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name in value:
        yield {key: item for key, item in value.items() if key != name}
    for name, item in value.items():
        for smaller in _smaller(item):
            yield {**value, name: smaller}


def _smaller(value: Any) -> Iterator[Any]:
    """Yield values that are smaller than *value*, the smallest first.

    >>> list(_smaller(12))
    [0, 1, 6]
    """
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int):
        if abs(value) > 1:
            yield from (0, 1)
        if abs(value) > 3:
            yield value // 2
    elif isinstance(value, float):
        if value not in (0.0, 1.0):
            yield from (0.0, 1.0)
    elif isinstance(value, str):
        if len(value) > 1:
            yield from ("", "a")
        if len(value) > 3:
            yield value[: len(value) // 2]
    elif isinstance(value, list):
        for index in range(len(value)):
            yield value[:index] + value[index + 1 :]
    elif isinstance(value, dict):
        yield from _smaller_objects(value)
