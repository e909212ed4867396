"""Parse the raw text that a model wrote into arguments: malformed syntax is repaired and named, a cut text is refused.

The law: a text is repaired only where it can be read in one way. Nothing is completed, except the last brace after a
value that closed itself, and only where the caller says that the model stopped by itself. A text that is cut inside a
string, key, number or literal, between the items of an array, or after a comma or colon is a ``TruncatedInputError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

from skillruntime.contract.coercion.scalars import is_same
from skillruntime.contract.lenient_json import LenientParser, has_unclear_escape, is_cut, unescaped
from skillruntime.contract.plain_json import find_fault, is_unicode
from skillruntime.contract.strict_json import LITERAL_DECODER, TOO_DEEP, UnreadableError, decode
from skillruntime.errors import SkillInputError, TruncatedInputError

__all__ = [
    *("CALL_MARK", "FINISHED", "Parsed", "cut_off", "fail", "looks_like_container"),
    *("parse_arguments", "parse_container"),
]

MAX_CHARACTERS = 10_000_000
MAX_ENCODED = 2
# The finish reasons by which a provider says that the model stopped by itself, as each writes it.
FINISHED = frozenset(
    {
        *("stop", "tool_calls", "function_call"),  # OpenAI, and the many servers that speak its protocol
        *("end_turn", "tool_use"),  # Anthropic; its `stop_sequence` may end a text anywhere
        "STOP",  # Gemini
        *("COMPLETE", "TOOL_CALL"),  # Cohere
        "eos",  # Hugging Face's text generation server: `eos_token` is left out, for it also ends what was cut
    }
)
# The finish reasons, in small letters, by which a provider says that the model was interrupted.
CUT_OFF_REASONS = frozenset(
    {
        *("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "incomplete"),
        *("content_filter", "safety"),
    }
)


@dataclass(frozen=True, slots=True)
class Parsed:
    """The value that a text writes, and the rules by which its syntax was repaired, in the order they were needed."""

    value: Any
    rules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Options:
    """How a text is read: decimals kept as they are written, an open object closed, the parameters' *names*."""

    literals: bool = True
    may_close: bool = False
    names: Collection[str] = ()
    encoded: int = 0

    def deeper(self) -> _Options:
        """Return the options for a text inside a text."""
        return replace(self, literals=True, encoded=self.encoded + 1)


def parse_arguments(
    text: str,
    *,
    finish_reason: str | None = None,
    literals: bool = False,
    quoting: bool = True,
    names: Collection[str] = (),
) -> Parsed:
    """Return the JSON value that *text* writes; an empty text is an empty object.

    *finish_reason* is the provider's word for why the model stopped: a missing last brace is added only if it is one of
    ``FINISHED``. With *literals*, a number that a float would not keep as it was written is a ``Decimal``, which does,
    so that ``1.50`` can become the text ``"1.50"``. Without *quoting*, no error quotes the text: it may hold a secret.
    *names* are the declared parameters: a value given to one of them beside the object is refused, not ignored.

    >>> parse_arguments('{"a": 1,}')
    Parsed(value={'a': 1}, rules=('trailing-comma',))
    >>> parse_arguments('{"city": "New Yo')
    Traceback (most recent call last):
    skillruntime.errors.TruncatedInputError: The arguments end inside a string

    Raises:
        TruncatedInputError: the text was cut off.
        SkillInputError: the text is not one JSON object, and cannot be read as one in only one way.
    """
    # Before any parsing: a text that was cut off may be whole JSON by chance.
    if finish_reason is not None and str(finish_reason).lower() in CUT_OFF_REASONS:
        fail(UnreadableError(f"stop early: the model was cut off (finish_reason {finish_reason})", cut=True), True)
    failure: UnreadableError | None = None
    try:
        parsed = _parse(text, _Options(literals, str(finish_reason) in FINISHED, names))
        if "\\u" in text or not text.isascii():
            _check_unicode(parsed.value)
    except UnreadableError as error:
        failure = error
    # Outside the handler: an error raised inside it would carry this one, which quotes the text, as its context.
    if failure is not None:
        fail(failure, quoting)
    return parsed


def parse_container(text: str) -> Parsed | None:
    """Return the array or object that *text* writes in JSON or as a Python literal; ``None`` if it writes neither.

    >>> parse_container("['a', 'b']")
    Parsed(value=['a', 'b'], rules=('single-quotes',))
    >>> parse_container("[1, 2") is None
    True
    """
    for _ in range(MAX_ENCODED):
        inner = _encoded(text.strip())
        if inner is None:
            break
        text = inner
    found: list[Parsed] = []
    for inside in _without_fence(text.strip(), (*_FENCES, "'")):
        inside = inside.strip()
        if len(inside) >= 2 and inside[0] + inside[-1] in ("[]", "{}", "()"):
            parsed = _parse_container(inside)
            # Of `[+49123]` in a text, what the number is for is not known here.
            if parsed is not None and "plus-sign" not in parsed.rules and not find_fault(parsed.value):
                found.append(parsed)
    return found[0] if found and all(is_same(each.value, found[0].value) for each in found) else None


def looks_like_container(text: str) -> bool:
    """Whether *text* writes an array or object, well or badly.

    >>> [looks_like_container(text) for text in ("['a', 'b']", "[a]", "['a'", "[Breaking] news", "a")]
    [True, True, True, False, False]
    """
    plain = text.strip(" \t\r\n'\"`")
    closing = {"[": "]", "{": "}"}.get(plain[:1])
    broken = closing is not None and (plain.endswith(closing) or closing not in plain)
    return broken or parse_container(text) is not None


# A word in brackets, as in ``[TOOL_CALL] {...} [/TOOL_CALL]``: not an array, for JSON is never written so.
_MARK = re.compile(r"\[/?[^\W\d][\w -]*\]")
# What models write around calls: ``[TOOL_CALLS]``, ``<tool_call>``, ``</s>``, ``<|python_tag|>``, a fence.
CALL_MARK = re.compile(rf"{_MARK.pattern}|</?[\w:.-]+>|<[|\uff5c][^<>|\uff5c]{{1,40}}[|\uff5c]>|```\w*|functools(?=\[)")
_MARKED_LIST = re.compile(rf"(?:(?:{CALL_MARK.pattern})\s*)+(?=\[\s*\{{)")


def _parse_container(text: str) -> Parsed | None:
    try:
        value = decode(text, literals=True)
        return Parsed(value) if isinstance(value, dict | list) else None
    except (ValueError, RecursionError, UnreadableError):
        pass
    parser = LenientParser(text)
    try:
        value = parser.value(0)
        parser.space()
    except UnreadableError:
        return None
    return Parsed(value, tuple(parser.rules)) if parser.position == len(text) else None


_FENCES = ("```", "~~~", "**", '"""', "'''", "`")


def _without_fence(text: str, marks: Iterable[str] = _FENCES) -> list[str]:
    """Return what *text* writes inside a Markdown fence or inside quotes that JSON does not have, else *text* itself.

    A fence holds its text as it is. Whether a backslash inside Python's triple quotes or inside backticks escapes the
    next character cannot be known, so there the text is returned both ways if it holds one.
    """
    # Longest first: a fence of three backticks begins with one.
    for mark in marks:
        if text.startswith(mark) and text.endswith(mark) and len(text) >= 2 * len(mark):
            inside = text[len(mark) : -len(mark)]
            if mark in ("```", "~~~"):
                return [_LANGUAGE.sub("", inside, count=1)]
            other = unescaped(inside) if "\\" in inside else None
            return [inside] if other is None else [inside, other]
    return [text]


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


_ESCAPED = re.compile(r'[\[{](?:\s|\\[nrt])*\\"')
_LENIENT = json.JSONDecoder(strict=False)


def cut_off(where: str) -> TruncatedInputError:
    """Return the error of arguments that were cut off, as *where* says: ``end inside a string``."""
    return TruncatedInputError(
        f"The arguments {where}",
        suggested_action="Send the whole call again as one complete JSON object; shorten long values if needed",
    )


def too_deep() -> SkillInputError:
    """Return the error of arguments with more levels than can be read: Python's json has a limit of its own."""
    return SkillInputError(
        "The arguments are nested deeper than JSON can be read here",
        suggested_action="Send arguments with fewer levels of objects and arrays",
    )


def fail(error: UnreadableError, quoting: bool) -> NoReturn:
    """Raise *error* as one of the library's own; with *quoting*, the message quotes the text."""
    message = str(error) if quoting else error.unquoted
    if error.cut:
        raise cut_off(message) from None
    if message == TOO_DEEP:
        raise too_deep() from None
    raise SkillInputError(
        f"The arguments are not one JSON object: {message}",
        suggested_action=error.action or "Send the arguments again as exactly one JSON object",
    ) from None


def _parse(text: str, options: _Options) -> Parsed:
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(f"the text has {len(text)} characters, more than {MAX_CHARACTERS}")
    # RFC 8259, section 8.1: a parser may ignore a byte order mark; editors on Windows write it.
    text = text.removeprefix("\ufeff").strip()
    # What OpenAI-compatible servers send for a call without arguments; the schema decides whether that is enough.
    if text in ("", "null", "None"):
        return Parsed({}, ("empty-text",))
    rules: tuple[str, ...] = ()
    try:
        value = decode(text, literals=options.literals)
    except RecursionError:
        if is_cut(text):
            raise UnreadableError("end inside an object or array", cut=True) from None
        raise UnreadableError(TOO_DEEP) from None
    except ValueError as error:
        # CPython's int() has a limit of 4,300 digits and says so in a ValueError.
        if "digits" in str(error):
            raise UnreadableError("a number has thousands of digits") from None
        value, rules = _repaired(text, options)
    # Models that write JSON inside JSON sometimes encode the whole once more.
    if isinstance(value, str) and options.encoded < MAX_ENCODED:
        inner = _encoded_once(value, options)
        return Parsed(inner.value, (*rules, "double-encoding", *inner.rules))
    if not isinstance(value, dict | list):
        kind = {str: "a string", bool: "a boolean"}.get(type(value), "a number")
        raise UnreadableError(f"they are {kind}")
    return Parsed(value, rules)


def _encoded_once(text: str, options: _Options) -> Parsed:
    """Parse *text*, which stood encoded in a string, if what is left of its backslashes is certain.

    A model that escapes the quotes alone writes the path `C:\\\\temp` as it is in JSON; decoded, it holds a tab.
    """
    if "\\" in text and text.lstrip()[:1] in ("{", "[") and has_unclear_escape(text):
        raise UnreadableError("the backslashes inside the quotes can be read in two ways")
    return _parse(text, options.deeper())


def _check_unicode(value: Any) -> None:
    try:
        if not is_unicode(value):
            raise UnreadableError("a string holds half of a surrogate pair, which is not a Unicode character")
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None


_FRAGMENT = re.compile(r"""["']\s*:?$|["'\d\]}]\s*,$""")
_OPERATOR = re.compile(r"""[-+*/%|&=?(\["']|\.\S""")


def _repaired(text: str, options: _Options) -> tuple[Any, tuple[str, ...]]:
    """Parse *text*, which is not JSON: inside a fence or quotes, between sentences, or with malformed syntax."""
    inside = _without_fence(text)
    if inside != [text] and inside[0].strip()[:1] in tuple("{[\"'"):
        if options.encoded > MAX_ENCODED:
            raise UnreadableError("there are fences within fences")
        inner = _only_one(inside, options.deeper())
        return inner.value, ("markdown-fence", *inner.rules)
    escaped = _encoded(text) if options.encoded < MAX_ENCODED else None
    if escaped is not None:
        inner = _encoded_once(escaped, options)
        return inner.value, ("double-encoding", *inner.rules)
    marks = _MARKED_LIST.match(text)
    if marks:
        return _one_of_list(text[marks.end() :])
    mark = _MARK.match(text)
    if text[0] in "[\"'" and not text.startswith("'''") and not mark:
        parser = LenientParser(text, may_close=options.may_close)
        value = parser.value(0)
        parser.space()
        if parser.position != len(text):
            raise UnreadableError("after it comes {}", parser.rest())
        if isinstance(value, str) and text[0] == "'":
            value = _checked_quotes(text[1:-1], value)
        return value, tuple(parser.rules)
    if mark and text[mark.end() :].lstrip().startswith("["):
        return _one_of_list(text[mark.end() :].lstrip())
    start = text.find("{")
    if start < 0:
        raise UnreadableError("they are {}", text[:200])
    return _object_in(text, start, options)


def _only_one(texts: list[str], options: _Options) -> Parsed:
    """Return what all of *texts* that can be parsed write, if it is the same.

    Raises:
        UnreadableError: none can be parsed, or they write different values.
    """
    found: list[Parsed] = []
    failure: UnreadableError | None = None
    for text in texts:
        try:
            found.append(_parse(text, options))
        except UnreadableError as error:
            failure = failure or error
    if not found:
        assert failure is not None
        raise failure
    if not all(is_same(each.value, found[0].value) for each in found):
        raise UnreadableError("the backslashes inside the quotes can be read in two ways")
    return found[0]


def _checked_quotes(inside: str, value: str) -> str:
    """Return *value*, what a Python string of *inside* holds, or *inside* where only that is strict JSON.

    ``'{"path": "C:\\\\temp"}'`` is a path as JSON and holds a tab as Python: then neither is taken.
    """
    if "\\" not in inside:
        return value
    try:
        strict = decode(inside, literals=True)
    except (ValueError, RecursionError):
        return value
    if not isinstance(strict, dict | list):
        return value
    try:
        other = _parse(value, _Options(encoded=MAX_ENCODED)).value
    except UnreadableError:
        return inside
    if not is_same(strict, other):
        raise UnreadableError("the backslashes inside the quotes can be read in two ways")
    return inside


def _one_of_list(text: str) -> tuple[Any, tuple[str, ...]]:
    """Parse the array of calls that follows a mark, as ``[TOOL_CALLS] [{...}]``; it must hold one call."""
    parser = LenientParser(text)
    value = parser.value(0)
    parser.space()
    if CALL_MARK.sub("", text[parser.position :]).strip():
        raise UnreadableError("after it comes {}", parser.rest())
    if len(value) > 1:
        raise _several(len(value))
    parser.note("text-around")
    return value, tuple(parser.rules)


_ALONE = "If this is the call, send its JSON object alone, without any other text"


def _several(count: int | None = None) -> UnreadableError:
    number = "more than one" if count is None else str(count)
    verb = "is" if count is None else "are"
    return UnreadableError(
        f"there {verb} {number} {'object' if count is None else 'calls'} in one text",
        action="Send one call at a time, each as exactly one JSON object",
    )


def _object_in(text: str, start: int, options: _Options) -> tuple[Any, tuple[str, ...]]:
    """Parse the object that begins at *start*; refuse what is around it if it may belong to the arguments."""
    parser = LenientParser(text, start, may_close=options.may_close)
    try:
        value, parser.position = LITERAL_DECODER.raw_decode(text, start)
    except (ValueError, RecursionError, UnreadableError):
        value = parser.value(0)
    end = parser.position
    parser.space()
    before, after = text[:start].strip(), text[parser.position :].strip()
    if not before and after in (",", ";", ",;"):
        parser.note("trailing-comma" if "," in after else "text-around")
        return value, tuple(parser.rules)
    # A bracket too many at the very end says nothing, unless an object closed before its parent went on.
    if after and not after.strip("}] \t\r\n") and not before:
        careful = LenientParser(text, start)
        careful.value(0)
        if not careful.left_object:
            return value, (*parser.rules, "stray-bracket")
    # A second object may be a second call, and running one of the two would lose the other.
    if "{" in after:
        raise _several()
    left, right = _MARK.sub("", before), _MARK.sub("", after).lstrip()
    # The object that was found may be a member of a larger one whose brace was lost.
    is_fragment = _FRAGMENT.search(left) or "[" in left or right[:1] in (",", ":") or set(right) & set("[]}")
    is_apart = text[end : end + 1].isspace()  # what follows at once in brackets is an index, not a mark
    if is_fragment or ("\n" not in text[end : parser.position] and _OPERATOR.match(right if is_apart else after)):
        raise UnreadableError("around the object there is {}", before[-100:] + " " + after[:100])
    beside = text[end:].strip()  # comments too: `// days: 5`
    if before or beside:
        # Its patterns take a fifth of the time of an import, and few calls have text beside their object.
        from skillruntime.contract.text_beside import beside_fault

        fault = beside_fault(before, beside, value, options.names)
        if fault:
            raise UnreadableError(*fault, action=_ALONE)
    if before or after:
        parser.note("markdown-fence" if "```" in before and "```" in after else "text-around")
    return value, tuple(parser.rules)
