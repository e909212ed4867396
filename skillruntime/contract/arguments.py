"""The model's raw text to arguments: slips of syntax are mended and named, what was cut off is refused.

The law: a text is mended only where it can be read in one way. Nothing is completed, except the very last brace after
a value that closed itself. Whatever is cut inside a string, key, number or literal, between the items of an array, or
after a comma or colon, is a ``TruncatedInputError``, for nobody can know how it would have gone on.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn

from skillruntime.contract.lenient_json import Reader, UnreadableError, literal, unique_members
from skillruntime.contract.plain_json import MAX_DEPTH, find_fault, is_unicode
from skillruntime.errors import SkillInputError, TruncatedInputError

__all__ = ["Parsed", "cut_off", "parse_arguments", "parse_container"]

MAX_CHARACTERS = 10_000_000
MAX_ENCODED = 2
CUT_OFF_REASONS = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"),
        *("content_filter", "safety"),
    }
)
"""What providers call it, in small letters, when a model did not stop by itself."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """What a text says, and the rules by which its syntax was mended, in the order they were needed."""

    value: Any
    mends: tuple[str, ...] = ()


def parse_arguments(
    text: str, *, finish_reason: str | None = None, literals: bool = False, quoting: bool = True
) -> Parsed:
    """Return the JSON value that *text* says; empty text is an empty object.

    *finish_reason* is what the provider said of why the model stopped. With *literals*, a number that a float would
    not remember as it was written is a ``Decimal``, which remembers, so that ``1.50`` can become the text ``"1.50"``.
    Without *quoting*, no error shows any of the text: it may hold a secret.

    >>> parse_arguments('{"a": 1,}')
    Parsed(value={'a': 1}, mends=('trailing-comma',))
    >>> parse_arguments('{"city": "New Yo')
    Traceback (most recent call last):
    skillruntime.errors.TruncatedInputError: The arguments end inside a string

    Raises:
        TruncatedInputError: the text was cut off.
        SkillInputError: the text is not one JSON object, and cannot be read as one in only one way.
    """
    if finish_reason is not None and finish_reason.lower() in CUT_OFF_REASONS:
        _fail(UnreadableError(f"stop early: the model was cut off (finish_reason {finish_reason})", cut=True), True)
    try:
        parsed = _parse(text, literals=literals, encoded=0)
        if "\\u" in text or not text.isascii():
            _check_unicode(parsed.value)
    except UnreadableError as error:
        _fail(error, quoting)
    return parsed


def parse_container(text: str) -> Parsed | None:
    """Return the array or object that *text* writes in JSON or as a Python literal; ``None`` if it writes none.

    >>> parse_container("['a', 'b']")
    Parsed(value=['a', 'b'], mends=('single-quotes',))
    >>> parse_container("[1, 2") is None
    True
    """
    for _ in range(MAX_ENCODED):
        inner = _encoded(text.strip())
        if inner is None:
            break
        text = inner
    fenced = _inside_fence(text.strip())
    text = (text if fenced is None else fenced).strip()
    if len(text) < 2 or text[0] + text[-1] not in ("[]", "{}", "()"):
        return None
    parsed = _parse_container(text)
    return None if parsed is None or find_fault(parsed.value) else parsed


def _parse_container(text: str) -> Parsed | None:
    try:
        value = _decode(text, literals=True)
        return Parsed(value) if isinstance(value, dict | list) else None
    except (ValueError, RecursionError, UnreadableError):
        pass
    reader = Reader(text)
    try:
        value = reader.value(0)
        reader.space()
    except UnreadableError:
        return None
    if reader.position != len(text) or "unclosed-object" in reader.mends:
        return None
    return Parsed(value, tuple(reader.mends))


def _inside_fence(text: str) -> str | None:
    """Return what stands between the two ends of a Markdown fence, or of Python's triple quotes; ``None`` if none."""
    for mark in ("```", "~~~", '"""', "'''"):
        if text.startswith(mark) and text.endswith(mark) and len(text) >= 2 * len(mark):
            inside = text[len(mark) : -len(mark)]
            return _LANGUAGE.sub("", inside, count=1) if mark in ("```", "~~~") else inside
    return None


_LANGUAGE = re.compile(r"^[\w+-]*[ \t]*\r?\n?")


def _encoded(text: str) -> str | None:
    """Return the text that *text* writes as a JSON string, whole or without its quotes: ``{\\"a\\": 1}``."""
    if text[:1] != '"' and not _ESCAPED.match(text):
        return None
    try:
        value = _LENIENT.decode(text if text[0] == '"' else f'"{text}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None


_ESCAPED = re.compile(r'[\[{]\s*\\"')
_LENIENT = json.JSONDecoder(strict=False)


def cut_off(where: str) -> TruncatedInputError:
    """Return the error of arguments that *where* says were cut off: ``end inside a string``."""
    return TruncatedInputError(
        f"The arguments {where}",
        suggested_action="Send the whole call again as one complete JSON object; shorten long values if needed",
    )


def _fail(error: UnreadableError, quoting: bool) -> NoReturn:
    message = str(error) if quoting else error.unquoted
    if error.cut:
        raise cut_off(message) from None
    raise SkillInputError(
        f"The arguments are not one JSON object: {message}",
        suggested_action="Send the arguments again as exactly one JSON object",
    ) from None


def _parse(text: str, *, literals: bool, encoded: int) -> Parsed:
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(f"the text has {len(text)} characters, more than {MAX_CHARACTERS}")
    text = text.removeprefix("\ufeff").strip()
    if text in ("", "null", "None"):
        return Parsed({}, ("empty-text",))
    mends: tuple[str, ...] = ()
    try:
        value = _decode(text, literals=literals)
    except RecursionError:
        raise UnreadableError(f"it is nested more than {MAX_DEPTH} levels deep") from None
    except ValueError as error:
        if "digits" in str(error):
            raise UnreadableError("a number has thousands of digits") from None
        value, mends = _mend(text, encoded)
    if isinstance(value, str) and encoded < MAX_ENCODED:
        inner = _parse(value, literals=literals, encoded=encoded + 1)
        return Parsed(inner.value, (*mends, "double-encoding", *inner.mends))
    if not isinstance(value, dict | list):
        kind = {str: "a string", bool: "a boolean"}.get(type(value), "a number")
        raise UnreadableError(f"it is {kind}")
    return Parsed(value, mends)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"{name} is not a JSON number")


_DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=_no_constant)
_LITERAL_DECODER = json.JSONDecoder(object_pairs_hook=unique_members, parse_constant=_no_constant, parse_float=literal)


def _decode(text: str, *, literals: bool) -> Any:
    return (_LITERAL_DECODER if literals else _DECODER).decode(text)


def _check_unicode(value: Any) -> None:
    try:
        if not is_unicode(value):
            raise UnreadableError("a text holds half of a surrogate pair, which is no Unicode character")
    except RecursionError:
        raise UnreadableError(f"it is nested more than {MAX_DEPTH} levels deep") from None


_FRAGMENT = re.compile(r"""["']\s*:?$|["'\d\]}]\s*,$""")
_MARK = re.compile(r"\[/?[^\W\d][\w -]*\]")
"""A word in brackets, as in ``[TOOL_CALL] {...} [/TOOL_CALL]``: no array, for no JSON is written so."""
_OPERATOR = re.compile(r"""[-+*/%|&=?(\["']|\.\S""")


def _mend(text: str, encoded: int) -> tuple[Any, tuple[str, ...]]:
    """Read *text* as JSON with slips: one object, a fence or prose around it, and the syntax of its neighbours."""
    fenced = _inside_fence(text)
    if fenced is not None and fenced.strip()[:1] in tuple("{[\"'"):
        if encoded > MAX_ENCODED:
            raise UnreadableError("there are fences within fences")
        inner = _parse(fenced, literals=True, encoded=encoded + 1)
        return inner.value, ("markdown-fence", *inner.mends)
    escaped = _encoded(text) if encoded < MAX_ENCODED else None
    if escaped is not None:
        inner = _parse(escaped, literals=True, encoded=encoded + 1)
        return inner.value, ("double-encoding", *inner.mends)
    if text[0] in "[\"'" and not text.startswith("'''") and not _MARK.match(text):
        reader = Reader(text)
        value = reader.value(0)
        reader.space()
        if reader.position == len(text):
            return value, tuple(reader.mends)
        raise UnreadableError("after it stands {}", reader.rest())
    start = text.find("{")
    if start < 0:
        raise UnreadableError("it is {}", text[:200])
    return _mend_object(text, start)


def _mend_object(text: str, start: int) -> tuple[Any, tuple[str, ...]]:
    """Read the object that begins at *start*, and refuse what stands around it if it may belong to it."""
    reader = Reader(text, start)
    try:
        value, reader.position = _LITERAL_DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, UnreadableError):
        value = reader.value(0)
    end = reader.position
    reader.space()
    before, after = text[:start].strip(), text[reader.position :].strip()
    if after and not after.strip("}] \t\r\n") and not before:
        careful = Reader(text, start)
        careful.value(0)
        if not careful.left_object:
            return value, (*reader.mends, "stray-bracket")
    if "{" in after:
        raise UnreadableError("there is more than one object")
    left, right = _MARK.sub("", before), _MARK.sub("", after).lstrip()
    is_fragment = _FRAGMENT.search(left) or "[" in left or right[:1] in (",", ":") or set(right) & set("[]}")
    is_apart = text[end : end + 1].isspace()  # what follows at once in brackets is an index, not a mark
    if is_fragment or ("\n" not in text[end : reader.position] and _OPERATOR.match(right if is_apart else after)):
        raise UnreadableError("around the object stands {}", before[-100:] + " " + after[:100])
    if before or after:
        reader.mended("markdown-fence" if "```" in before and "```" in after else "text-around")
    return value, tuple(reader.mends)
