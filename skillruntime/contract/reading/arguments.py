"""Parse the raw text that a model wrote into arguments: malformed syntax is repaired
and named, a cut text is refused.

The law: a text is repaired only where it can be read in one way. Nothing is completed,
except the last brace after a value that closed itself, and only where the caller says
that the model stopped by itself. A text that is cut inside a string, key, number or
literal, between the items of an array, or after a comma or colon is a
``TruncatedInputError``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, NoReturn

from skillruntime.contract.reading.json_text import (
    TOO_DEEP,
    TWO_READINGS,
    LenientParser,
    UnreadableError,
    decode,
    has_unclear_escape,
)
from skillruntime.contract.repair_rules import (
    DOUBLE_ENCODING,
    EMPTY_OBJECT,
    EMPTY_TEXT,
    MARKDOWN_FENCE,
    REPEATED_OBJECT,
)
from skillruntime.contract.schemas.plain_json import find_fault, is_same, is_unicode
from skillruntime.errors import SkillInputError, TruncatedInputError

MAX_CHARACTERS = 10_000_000
# How many texts may surround a text that is encoded as a JSON string.
MAX_NESTING = 2
# The finish reasons by which a provider says that the model stopped by itself, as each
# writes it.
FINISHED = frozenset(
    {
        # OpenAI, and the many servers that speak its protocol.
        "stop",
        "tool_calls",
        "function_call",
        # Anthropic. Its `stop_sequence` is left out: it may end a text anywhere.
        "end_turn",
        "tool_use",
        # Gemini.
        "STOP",
        # Cohere.
        "COMPLETE",
        "TOOL_CALL",
        # Hugging Face's text generation server. Its `eos_token` is left out: it also
        # ends texts that were cut.
        "eos",
    }
)
# The finish reasons, in small letters, by which a provider says that the model was
# interrupted.
CUT_OFF_REASONS = frozenset(
    {
        "length",
        "max_tokens",
        "max_output_tokens",
        "model_length",
        "model_context_window_exceeded",
        "incomplete",
        "content_filter",
        "safety",
    }
)
# What separates the items of a list: comma, semicolon, bar, tab, line, and the commas
# of Chinese, Japanese and Arabic.
_LISTING = re.compile("[,;|\\t\\n\u3001\uff0c\uff1b\u060c\u061b]")


class Parsed(NamedTuple):
    """The value that a text writes, and the rules by which its syntax was repaired, in
    the order they were needed.

    ``tool`` is the name of the tool that the text calls, where its form gives one. With
    ``strings``, the value holds the texts of a chat template's parameters, and
    ``strings`` says of some of them whether they are strings.
    """

    value: Any
    rules: tuple[str, ...] = ()
    tool: str = ""
    strings: dict[str, bool] | None = None


class _Options(NamedTuple):
    """How a text is read.

    ``literals`` keeps decimals as they are written, ``may_close`` closes an open
    object; ``names`` are the declared parameters and ``tool`` is the tool's name.
    ``nesting`` counts the texts around this one: JSON strings, and fences.
    """

    literals: bool = True
    may_close: bool = False
    names: Collection[str] = ()
    tool: str = ""
    nesting: int = 0

    def for_inner_text(self) -> _Options:
        """Return the options for a text inside a text."""
        return self._replace(literals=True, nesting=self.nesting + 1)


def parse_arguments(
    text: str,
    *,
    finish_reason: str | None = None,
    literals: bool = False,
    quoting: bool = True,
    names: Collection[str] = (),
    tool: str = "",
) -> Parsed:
    """Return the JSON value that *text* writes; an empty text is an empty object.

    *finish_reason* is the provider's word for why the model stopped: a missing last
    brace is added only if it is one of ``FINISHED``. With *literals*, a number that a
    float would not keep as it was written is a ``Decimal``, which does, so that
    ``1.50`` can become the text ``"1.50"``. Without *quoting*, no error quotes the
    text: it may hold a secret. *names* are the declared parameters: a value given to
    one of them beside the object is refused, not ignored. *tool* is the name of the
    tool, where it is known.

    >>> parse_arguments('{"a": 1,}').value
    {'a': 1}
    >>> parse_arguments('{"city": "New Yo')
    Traceback (most recent call last):
    skillruntime.errors.TruncatedInputError: The arguments end inside a string

    Raises:
        TruncatedInputError: the text was cut off.
        SkillInputError: the text is not one JSON object, and cannot be read as one in
            only one way.
    """
    # Before any parsing: a text that was cut off may be whole JSON by chance.
    if finish_reason is not None and str(finish_reason).lower() in CUT_OFF_REASONS:
        raise cut_off(
            f"stop early: the model was cut off (finish_reason {finish_reason})"
        )
    may_close = str(finish_reason) in FINISHED
    options = _Options(literals, may_close, names, tool)
    failure: UnreadableError | None = None
    try:
        parsed = _parse(text, options)
        if "\\u" in text or not text.isascii():
            _check_unicode(parsed.value)
    except UnreadableError as error:
        failure = error
    # Outside the handler: an error raised inside it would carry this one, which quotes
    # the text, as its context.
    if failure is not None:
        fail(failure, quoting)
    return parsed


def parse_container(text: str) -> Parsed | None:
    """Return the array or object that *text* writes in JSON or as a Python literal;
    ``None`` if it writes neither.

    >>> parse_container("['a', 'b']").value
    ['a', 'b']
    >>> parse_container("[1, 2") is None
    True
    """
    for _ in range(MAX_NESTING):
        inner = _decode_string(text.strip())
        if inner is None:
            break
        text = inner
    try:
        content = _without_fence(text.strip(), _CONTAINER_FENCES).strip()
    except UnreadableError:
        return None
    if len(content) < 2 or content[0] + content[-1] not in ("[]", "{}", "()"):
        return None
    parsed = _parse_container(content)
    if parsed is None or find_fault(parsed.value):
        return None
    return parsed


def wrapped(content: Any) -> Any:
    """Return *content*, which is under a wrapper's name, as an array or object if it is
    one or writes one; return anything else unchanged.

    >>> wrapped('{"city": "Paris"}'), wrapped({"city": "Paris"}), wrapped("Paris")
    ({'city': 'Paris'}, {'city': 'Paris'}, 'Paris')
    """
    parsed = parse_container(content) if isinstance(content, str) else None
    return parsed.value if parsed else content


def pieces(text: str) -> list[str]:
    """Return the items that *text* may list; all of it is one item if it has no
    separator.

    >>> pieces("red, green"), pieces("red")
    (['red', 'green'], ['red'])
    """
    return [piece.strip() for piece in _LISTING.split(text.strip())]


def looks_like_container(text: str) -> bool:
    """Return whether *text* writes an array or object, well-formed or not.

    >>> [looks_like_container(text) for text in ("['a', 'b']", "[a]", "['a'")]
    [True, True, True]
    >>> [looks_like_container(text) for text in ("[Breaking] news", "a")]
    [False, False]
    """
    plain = text.strip(" \t\r\n'\"`")
    closing = {"[": "]", "{": "}"}.get(plain[:1])
    # A bracket that is closed only inside the text, as in `[Breaking] news`, is prose.
    if closing and (plain.endswith(closing) or closing not in plain):
        return True
    return parse_container(text) is not None


def _parse_container(text: str) -> Parsed | None:
    try:
        value = decode(text, literals=True)
    except (ValueError, RecursionError, UnreadableError):
        return _parse_container_leniently(text)
    if not isinstance(value, dict | list):
        return None
    return Parsed(value)


def _parse_container_leniently(text: str) -> Parsed | None:
    parser = LenientParser(text)
    try:
        value = parser.value(0)
        parser.space()
    except UnreadableError:
        return None
    if parser.position != len(text):
        return None
    return Parsed(value, tuple(parser.rules))


# Longest first: a fence of three backticks begins with one.
_FENCES = ("```", "~~~", "**", '"""', "'''", "`")
_CONTAINER_FENCES = (*_FENCES, "'")


def _without_fence(text: str, marks: Iterable[str] = _FENCES) -> str:
    """Return what *text* writes inside a Markdown fence or inside quotes that JSON does
    not have, else *text* itself.

    Raises:
        UnreadableError: a backslash stands in such quotes; whether it escapes the next
            character cannot be known.
    """
    for mark in marks:
        if len(text) < 2 * len(mark):
            continue
        if not (text.startswith(mark) and text.endswith(mark)):
            continue
        content = text[len(mark) : -len(mark)]
        if mark in ("```", "~~~"):
            return _LANGUAGE.sub("", content, count=1)
        if "\\" in content and content.strip()[:1] in ("{", "["):
            raise UnreadableError(TWO_READINGS)
        return content
    return text


_LANGUAGE = re.compile(r"^[\w+-]*[ \t]*\r?\n?")


def _decode_string(text: str) -> str | None:
    """Return the text that *text* writes as a JSON string, whole or without its quotes:
    ``{\\"a\\": 1}``.
    """
    if text[:1] == '"':
        string = text
    elif _ESCAPED.match(text):
        string = f'"{text}"'
    else:
        return None
    try:
        value = _LENIENT.decode(string)
    except ValueError:
        return None
    if not isinstance(value, str):
        return None
    return value


_ESCAPED = re.compile(r'[\[{](?:\s|\\[nrt])*\\"')
_LENIENT = json.JSONDecoder(strict=False)


def cut_off(where: str) -> TruncatedInputError:
    """Return the error of arguments that were cut off, as *where* says: ``end inside a
    string``.
    """
    return TruncatedInputError(
        f"The arguments {where}",
        suggested_action="Send the whole call again as one complete JSON object; "
        "shorten long values if needed",
    )


def too_deep() -> SkillInputError:
    """Return the error of arguments with more levels than can be read: Python's json
    has a limit of its own.
    """
    return SkillInputError(
        "The arguments are nested deeper than JSON can be read here",
        suggested_action="Send arguments with fewer levels of objects and arrays",
    )


def fail(error: UnreadableError, quoting: bool) -> NoReturn:
    """Raise *error* as one of the library's own; with *quoting*, the message quotes the
    text.
    """
    message = str(error) if quoting else error.unquoted
    if error.cut:
        raise cut_off(message) from None
    if message == TOO_DEEP:
        raise too_deep() from None
    raise SkillInputError(
        f"The arguments are not one JSON object: {message}",
        suggested_action=error.action
        or "Send the arguments again as exactly one JSON object",
    ) from None


def _parse(text: str, options: _Options) -> Parsed:
    if len(text) > MAX_CHARACTERS:
        raise UnreadableError(
            f"the text has {len(text)} characters, more than {MAX_CHARACTERS}"
        )
    # RFC 8259, section 8.1: a parser may ignore a byte order mark; editors on Windows
    # write it.
    text = text.removeprefix("\ufeff").strip()
    # What OpenAI-compatible servers send for a call without arguments; the schema
    # decides whether that is enough.
    if text in ("", "null", "None"):
        return Parsed({}, (EMPTY_TEXT,))
    try:
        parsed = Parsed(decode(text, literals=options.literals))
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None
    except ValueError as error:
        # CPython's int() has a limit of 4,300 digits and says so in a ValueError.
        if "digits" in str(error):
            raise UnreadableError("a number has thousands of digits") from None
        parsed = _parse_malformed(text, options)
    # Models that write JSON inside JSON sometimes encode the whole once more.
    if isinstance(parsed.value, str) and options.nesting < MAX_NESTING:
        inner = _parse_encoded(parsed.value, options)
        return _with_rules_before((*parsed.rules, DOUBLE_ENCODING), inner)
    if not isinstance(parsed.value, dict | list):
        kind = {str: "a string", bool: "a boolean"}.get(type(parsed.value), "a number")
        raise UnreadableError(f"they are {kind}")
    return parsed


def _with_rules_before(rules: tuple[str, ...], inner: Parsed) -> Parsed:
    return inner._replace(rules=(*rules, *inner.rules))


def _parse_encoded(text: str, options: _Options) -> Parsed:
    """Parse *text*, which was encoded in a string, if the meaning of its remaining
    backslashes is certain.

    A model that escapes the quotes alone writes the path `C:\\\\temp` as it is in JSON;
    decoded, it holds a tab.
    """
    is_container = text.lstrip()[:1] in ("{", "[")
    if "\\" in text and is_container and has_unclear_escape(text):
        raise UnreadableError(TWO_READINGS)
    return _parse(text, options.for_inner_text())


def _check_unicode(value: Any) -> None:
    try:
        if not is_unicode(value):
            raise UnreadableError(
                "a string holds half of a surrogate pair, which is not a Unicode "
                "character"
            )
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None


def _parse_malformed(text: str, options: _Options) -> Parsed:
    """Parse *text*, which is not JSON: inside a fence or quotes, in a form of calls, or
    with malformed syntax.
    """
    content = _without_fence(text)
    if content != text and content.strip()[:1] in ("{", "[", '"', "'"):
        # One level more than below: the innermost string may hold a fence.
        if options.nesting > MAX_NESTING:
            raise UnreadableError("there are fences within fences")
        inner = _parse(content, options.for_inner_text())
        return _with_rules_before((MARKDOWN_FENCE,), inner)
    if options.nesting < MAX_NESTING:
        decoded = _decode_string(text)
        if decoded is not None:
            inner = _parse_encoded(decoded, options)
            return _with_rules_before((DOUBLE_ENCODING,), inner)
    if text[0] in "\"'" and not text.startswith("'''"):
        return _parse_whole(text, options)
    if text[0] == "{" and text[-1] == "}":
        try:
            return _parse_whole(text, options)
        except UnreadableError:
            pass  # there may be several objects, or text between two of them
    if text[0] == "[" and not _WORD_IN_BRACKETS.match(text):
        return _parse_whole(text, options)
    return _parse_call(text, options)


def _parse_call(text: str, options: _Options) -> Parsed:
    """Return the arguments of the one call that *text* holds."""
    # Its patterns take a fifth of the time of an import, and few texts need them.
    from skillruntime.contract.reading.call_forms import calls_of_text

    calls = calls_of_text(
        text, may_close=options.may_close, names=options.names, tool=options.tool
    )
    if not calls and "{" in text:
        raise UnreadableError(
            "the only object is the model's reasoning, or a result", action=_ONE_CALL
        )
    if not calls:
        raise UnreadableError("they are {}", text[:200])
    if len(calls) > 1:
        raise UnreadableError(_SEVERAL_OBJECTS, action=_ONE_CALL)
    call = calls[0]
    if call.fault is not None:
        raise call.fault
    return Parsed(call.value, call.rules, call.name, call.strings)


_WORD_IN_BRACKETS = re.compile(r"\[/?[^\W\d]")
_ONE_CALL = "Send one call at a time, each as exactly one JSON object"
_SEVERAL_OBJECTS = "there is more than one object in one text"


def several_calls(count: int) -> SkillInputError:
    """Return the error of *count* calls in one text: running one of them would lose the
    others.
    """
    return SkillInputError(
        f"The arguments are not one JSON object: there are {count} calls in one text",
        suggested_action=_ONE_CALL,
    )


def _parse_whole(text: str, options: _Options) -> Parsed:
    """Parse *text*, which is one value, perhaps written several times."""
    parser = LenientParser(text, may_close=options.may_close)
    value = parser.value(0)
    parser.space()
    # Servers and models write one object several times (simonw/llm#1130,
    # 64bit/async-openai#329), and servers that put a call together from its parts an
    # empty one before it (ogx-ai/ogx#5462).
    while parser.rest()[:1] == "{":
        following = parser.value(0)
        if not value:
            parser.note(EMPTY_OBJECT)
        elif is_same(following, value):
            parser.note(REPEATED_OBJECT)
        else:
            raise UnreadableError(_SEVERAL_OBJECTS, action=_ONE_CALL)
        value = following
        parser.space()
    if parser.position != len(text):
        raise UnreadableError("after it comes {}", parser.rest())
    if text[0] == "'" and "\\" in text:
        raise UnreadableError(TWO_READINGS)
    return Parsed(value, tuple(parser.rules))
