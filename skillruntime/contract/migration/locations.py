"""Find and change the places inside a JSON value that a migration step names.

A place is a tuple of JSON Pointer tokens; the token ``*`` means each item of an array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

from skillruntime.contract.schemas.plain_json import rebuilt
from skillruntime.contract.schemas.pointer import Path, format_pointer

Change: TypeAlias = Callable[[dict[str, Any]], None]
Tokens: TypeAlias = tuple[str, ...]


# Without "Error" in its name, because a migration always catches it.
class StepRefused(Exception):  # noqa: N818
    """A step cannot be applied to a value; ``path`` points to the value."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


def copy_json(value: Any) -> Any:
    """Return a copy of *value* that shares no array or object with it."""
    return rebuilt(value, lambda scalar: scalar)


def common_prefix(tokens: Tokens) -> Tokens:
    """Return the part of a place up to and including its last ``*``."""
    length = len(tokens)
    while length and tokens[length - 1] != "*":
        length -= 1
    return tokens[:length]


def replace_each(tokens: Tokens, new: Callable[[Any, str], Any]) -> Change:
    """Return the change that replaces every value at *tokens* by ``new(value,
    pointer)``.
    """

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in _holders(arguments, tokens):
            for key in _keys(holder, tokens[-1]):
                holder[key] = new(holder[key], format_pointer((*path, key)))

    return change


def objects_at(arguments: Any, tokens: Tokens) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield every object of *arguments* that has or could have the last of *tokens* as
    a member, with the object's path.
    """
    for holder, path in _holders(arguments, tokens):
        if isinstance(holder, dict):
            yield holder, path
        # Removing an item would shift the places of all later items.
        elif _indexes(holder, tokens[-1]):
            raise StepRefused(
                format_pointer((*path, tokens[-1])),
                "an array's item cannot be added or removed",
            )


def items_at(
    arguments: dict[str, Any], shared: Tokens
) -> Iterator[tuple[dict[str, Any], Path]]:
    """Yield every object at the place *shared*, with its path."""
    if not shared:
        yield arguments, ()
        return
    for holder, path in _holders(arguments, shared):
        for key in _keys(holder, shared[-1]):
            if isinstance(holder[key], dict):
                yield holder[key], (*path, key)


def put(holder: dict[str, Any], key: str, value: Any, path: Path) -> None:
    """Set the member *key*, which must not exist yet."""
    if key in holder:
        pointer = format_pointer((*path, key))
        raise StepRefused(
            pointer, f"{pointer} already has a value, which would be overwritten"
        )
    holder[key] = value


def put_down(holder: dict[str, Any], tokens: Tokens, value: Any, path: Path) -> None:
    """Set the value at the path *tokens* below *holder*; missing objects on the way are
    created.
    """
    for token in tokens[:-1]:
        path = (*path, token)
        member: Any = holder.setdefault(token, {})
        if not isinstance(member, dict):
            pointer = format_pointer(path)
            raise StepRefused(
                pointer, f"{pointer} is not an object; nothing can be put into it"
            )
        holder = member
    put(holder, tokens[-1], value, path)


def _holders(value: Any, tokens: Tokens, path: Path = ()) -> Iterator[tuple[Any, Path]]:
    """Yield every container that may hold the last of *tokens*, with its path."""
    if not isinstance(value, dict | list):
        return
    if len(tokens) == 1:
        yield value, path
        return
    for key in _keys(value, tokens[0]):
        yield from _holders(value[key], tokens[1:], (*path, key))


def _keys(holder: Any, token: str) -> Any:
    """Return the keys or indexes of *holder* that *token* names."""
    if isinstance(holder, list):
        return _indexes(holder, token)
    return (token,) if token in holder else ()


def _indexes(items: list[Any], token: str) -> range:
    if token == "*":
        return range(len(items))
    # RFC 6901, section 4: ASCII digits only. No array is so long that its indexes need
    # more than nine digits.
    if not token.isdecimal() or not token.isascii() or len(token) > 9:
        return range(0)
    index = int(token)
    if index >= len(items):
        return range(0)
    return range(index, index + 1)
