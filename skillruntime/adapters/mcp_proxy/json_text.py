"""Find the byte positions of the members of a JSON text, so that one member can be
replaced while all others keep their bytes.

Only the requested values are parsed: any other value is skipped by its brackets and
quotes, without recursion, so that neither depth nor size costs more than one pass.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.lazy_patterns import lazy_pattern

__all__ = [
    "Malformed",
    "Span",
    "decode",
    "elements",
    "encode",
    "is_json",
    "members",
    "object_in",
    "replaced",
    "skip",
    "text_of",
    "to_bytes",
]

Span = tuple[int, int]

_SPACE = re.compile(rb"[ \t\r\n]*+")
# Possessive: a text of 100 MB with an escape in every second byte must not make the
# engine keep 50 million states.
_WHOLE_STRING = lazy_pattern(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
# A short string is skipped by the pattern, a long one by `find`, which is ten times as
# fast and slow to begin.
_BRACKET = re.compile(rb'"[^"\\]{0,100}+"|["{}\[\]]')
_SCALAR = re.compile(rb'[^\s,:"{}\[\]]++')
_OPEN, _CLOSE = frozenset(b"{["), frozenset(b"}]")


class Malformed(ValueError):  # noqa: N818  it says what the text is
    """The text is not JSON."""


def skip(text: bytes, start: int) -> int:
    """Return the end position of the value that begins at *start*.

    >>> skip(b'{"a": [1, "]"]}, 2', 0)
    15

    Raises:
        Malformed: no value begins there, or it has no end.
    """
    first = text[start : start + 1]
    if first == b'"':
        return _string_end(text, start)
    if first not in (b"{", b"["):
        match = _SCALAR.match(text, start)
        if match is None:
            raise Malformed(f"no JSON value at byte {start}")
        return match.end()
    # Only the depth is counted, not which bracket closes which: a parser of the value
    # itself reports a mismatch.
    depth = 0
    position: int | None = start
    while position is not None:
        found, position = _BRACKET.finditer(text, position), None
        for match in found:
            mark = text[match.start()]
            if mark in _OPEN:
                depth += 1
            elif mark in _CLOSE:
                depth -= 1
                if depth == 0:
                    return match.end()
            elif match.end() - match.start() == 1:
                position = _string_end(text, match.start())
                break
    raise Malformed(f"the value at byte {start} has no end")


def members(text: bytes, start: int = 0) -> Iterator[tuple[str, Span]]:
    """Yield each key of the object that begins at *start*, with the span of its value;
    a key may be repeated.

    >>> text = b' {"id" : 7, "method":"ping"}'
    >>> [(key, text[start:end]) for key, (start, end) in members(text)]
    [('id', b'7'), ('method', b'"ping"')]

    Raises:
        Malformed: it is not an object.
    """
    position = _first_in(text, start, b"{", b"}")
    while position is not None:
        match = _WHOLE_STRING.match(text, position)
        if match is None:
            raise Malformed(f"no key at byte {position}")
        # Servers read stdin with replacement characters: a key that is not UTF-8 must
        # not hide the message.
        key = str(decode(match[0].decode("utf-8", "replace").encode()))
        position = _after_space(text, match.end())
        _expect(text, position, b":")
        position = _after_space(text, position + 1)
        end = skip(text, position)
        yield key, (position, end)
        position = _next_in(text, end, b"}")


def elements(text: bytes, start: int = 0) -> Iterator[Span]:
    """Yield the span of each item of the array that begins at *start*.

    >>> [text[a:b] for text in [b'[1, {"a": [2]}]'] for a, b in elements(text)]
    [b'1', b'{"a": [2]}']

    Raises:
        Malformed: it is not an array.
    """
    position = _first_in(text, start, b"[", b"]")
    while position is not None:
        end = skip(text, position)
        yield position, end
        position = _next_in(text, end, b"]")


def replaced(text: bytes, changes: Mapping[Span, bytes]) -> bytes:
    """Return *text* with each span of *changes* replaced; an empty span is a place to
    insert at.

    >>> replaced(b"abcdef", {(1, 2): b"X", (4, 4): b"--"})
    b'aXcd--ef'
    """
    parts, position = [], 0
    # Insertions sort before a replacement that begins at the same place.
    for (start, end), new in sorted(changes.items()):
        parts += [text[position:start], new]
        position = end
    return b"".join([*parts, text[position:]])


def text_of(text: bytes, span: Span) -> str | None:
    """Return the string at *span*; ``None`` if the value is not a string, or not
    UTF-8.
    """
    if text[span[0] : span[0] + 1] != b'"':
        return None
    try:
        return str(decode(text[span[0] : span[1]]))
    except Malformed:
        return None


def decode(text: bytes) -> Any:
    """Return the value of the JSON *text*; control characters in strings are read, as
    servers read them.

    Raises:
        Malformed: *text* is not JSON, not UTF-8, or nested too deep.
    """
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise Malformed(str(error)) from None


def object_in(text: bytes) -> dict[str, Any] | None:
    """Parse *text* as an object; ``None`` if it is another value, or not JSON.

    >>> object_in(b'{"a": 1}'), object_in(b"[1]"), object_in(b"")
    ({'a': 1}, None, None)
    """
    try:
        value = decode(text)
    except Malformed:
        return None
    if not isinstance(value, dict):
        return None
    return value


def encode(value: Any, literals: Mapping[float, str] | None = None) -> str:
    """Return *value* as compact JSON; a number in *literals* keeps its original
    spelling.

    >>> encode({"a": [1.5, "é", None], "b": 2}, {1.5: "1.50"})
    '{"a":[1.50,"é",null],"b":2}'
    """
    if not literals:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    match value:
        case dict():
            return (
                "{"
                + ",".join(
                    f"{encode(key)}:{encode(each, literals)}"
                    for key, each in value.items()
                )
                + "}"
            )
        case list():
            return "[" + ",".join(encode(each, literals) for each in value) + "]"
        case float():
            return literals.get(value) or encode(value)
        case _:
            return encode(value)


def is_json(text: bytes) -> bool:
    """Return whether a lenient server would read *text* as JSON: at any depth, and with
    bytes that are not UTF-8.

    >>> is_json(b'{"a": "\\xff"}'), is_json(b'{"a": 1,}')
    (True, False)
    """
    try:
        json.loads(text.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        return True
    except ValueError:
        return False
    return True


def to_bytes(value: Any, literals: Mapping[float, str] | None = None) -> bytes:
    """Return *value* as compact JSON in UTF-8; half of a surrogate pair, which UTF-8
    cannot encode, becomes an escape.
    """
    text = encode(value, literals)
    try:
        return text.encode()
    except UnicodeEncodeError:
        return re.sub(
            "[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text
        ).encode()


def _string_end(text: bytes, start: int) -> int:
    end = text.find(b'"', start + 1)
    if end < 0:
        raise Malformed(f"the string at byte {start} has no end")
    if text.find(b"\\", start, end) < 0:
        return end + 1
    match = _WHOLE_STRING.match(text, start)
    if match is None:
        raise Malformed(f"the string at byte {start} has no end")
    return match.end()


def _first_in(text: bytes, start: int, opening: bytes, closing: bytes) -> int | None:
    """Return the position of the first item of the object or array at *start*; ``None``
    if it is empty.
    """
    position = _after_space(text, start)
    _expect(text, position, opening)
    position = _after_space(text, position + 1)
    if text[position : position + 1] == closing:
        return None
    return position


def _next_in(text: bytes, end: int, closing: bytes) -> int | None:
    """Return the position of the item that follows the one ending at *end*; ``None``
    after the last item.
    """
    position = _after_space(text, end)
    if text[position : position + 1] == closing:
        return None
    _expect(text, position, b",")
    return _after_space(text, position + 1)


def _after_space(text: bytes, position: int) -> int:
    match = _SPACE.match(text, position)
    if match is None:
        return position
    return match.end()


def _expect(text: bytes, position: int, mark: bytes) -> None:
    if text[position : position + 1] != mark:
        raise Malformed(f"expected {mark.decode()} at byte {position}")
