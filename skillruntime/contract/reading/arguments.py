"""Parse the raw text that a model wrote into arguments: malformed syntax is repaired
and recorded, truncated text is refused.

The law: a text is repaired only if it has exactly one possible reading. Nothing is
completed, except the last brace after a value that closed itself, and only if the
caller says that the model stopped by itself. A text that ends inside a string, key,
number or literal, between the items of an array, or after a comma or colon is a
``TruncatedInputError``.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple, NoReturn

from skillruntime.contract.reading.chat_marks import Holds
from skillruntime.contract.reading.json_text import (
    TOO_DEEP,
    TWO_READINGS,
    LenientParser,
    UnreadableError,
    decode,
    decode_valid,
    decode_with_last_comma,
    has_unclear_escape,
)
from skillruntime.contract.repair_rules import (
    DOUBLE_ENCODING,
    EMPTY_OBJECT,
    EMPTY_TEXT,
    MARKDOWN_FENCE,
    REPEATED_OBJECT,
    TRAILING_COMMA,
)
from skillruntime.contract.schemas.plain_json import (
    Plainness,
    find_fault,
    is_same,
    is_unicode,
)
from skillruntime.errors import SkillInputError, TruncatedInputError
from skillruntime.lazy_patterns import lazy_pattern

MAX_CHARACTERS = 10_000_000
# The maximum depth of JSON strings inside JSON strings.
MAX_NESTING = 2
# The finish reasons by which providers say that the model stopped by itself, in their
# spelling.
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
        # ends truncated texts.
        "eos",
    }
)
# The finish reasons, in lower case, by which providers say that the model was
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
# The separators of list items: comma, semicolon, tab, newline, bar, and the commas and
# semicolons of Chinese, Japanese and Arabic.
_LISTING = lazy_pattern("[,;|\\t\\n\u3001\uff0c\uff1b\u060c\u061b]")


class Parsed(NamedTuple):
    """The parsed value of a text, and the rules that repaired its syntax, in the order
    of their use.

    ``tool`` is the name of the called tool, if the form of the call contains one. If
    ``strings`` is set, ``value`` holds the texts of a chat template's parameters, and
    ``strings`` says for some of them whether they are strings. ``holds`` says whether
    ``value`` is an envelope or the arguments, if the form of the call says so.
    ``plain`` is the plainness of ``value``, if it is known.
    """

    value: Any
    rules: tuple[str, ...] = ()
    tool: str = ""
    strings: dict[str, bool] | None = None
    holds: Holds = ""
    plain: Plainness | None = None


class _Options(NamedTuple):
    """The options for reading a text.

    ``literals`` keeps decimals as written, ``may_close`` allows closing an open object;
    ``names`` are the declared parameters and ``tool`` is the tool's name. ``nesting``
    counts the JSON strings and fences around the text.
    """

    literals: bool = True
    may_close: bool = False
    names: Collection[str] = ()
    required: Collection[str] = ()
    tool: str = ""
    nesting: int = 0

    def for_inner_text(self) -> _Options:
        """Return the options for a text inside this text."""
        return self._replace(literals=True, nesting=self.nesting + 1)


def parse_arguments(
    text: str,
    *,
    finish_reason: str | None = None,
    literals: bool = False,
    quoting: bool = True,
    names: Collection[str] = (),
    required: Collection[str] = (),
    tool: str = "",
) -> Parsed:
    """Parse *text* into a JSON value; an empty text is an empty object.

    *finish_reason* is the provider's word for why the model stopped: a missing last
    brace is added only if it is one of ``FINISHED``. With *literals*, a number whose
    spelling a float would change is a ``Decimal``, so that ``1.50`` can become the text
    ``"1.50"``. Without *quoting*, no error quotes the text: it may hold a secret.
    *names* are the declared parameters: a value given to one of them beside the object
    is refused, not ignored. *required* are the parameters that a call must have, *tool*
    is the name of the tool, if it is known.

    >>> parse_arguments('{"a": 1,}').value
    {'a': 1}
    >>> parse_arguments('{"city": "New Yo')
    Traceback (most recent call last):
    skillruntime.errors.TruncatedInputError: The arguments end inside a string

    Raises:
        TruncatedInputError: the text was cut off.
        SkillInputError: the text is not one JSON object, and does not have exactly one
            reading as an object.
    """
    # Check this before parsing, because a truncated text may be valid JSON by chance.
    if finish_reason is not None and str(finish_reason).lower() in CUT_OFF_REASONS:
        raise cut_off(
            f"stop early: the model was cut off (finish_reason {finish_reason})"
        )
    may_close = str(finish_reason) in FINISHED
    options = _Options(literals, may_close, names, required, tool)
    failure: UnreadableError | None = None
    try:
        parsed = _parse(text, options)
        if _may_hold_surrogates(text):
            _check_unicode(parsed.value)
    except UnreadableError as error:
        failure = error
    # Raise outside the handler: inside it, the new error would have this error, which
    # quotes the text, as its context.
    if failure is not None:
        fail(failure, quoting)
    return parsed


def parse_container(text: str) -> Parsed | None:
    """Parse *text* into an array or object, from JSON or a Python literal; return
    ``None`` if it is neither.

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
    """Return *content*, the value of a wrapper's key, parsed if it is the text of an
    array or object, else unchanged.

    >>> wrapped('{"city": "Paris"}'), wrapped({"city": "Paris"}), wrapped("Paris")
    ({'city': 'Paris'}, {'city': 'Paris'}, 'Paris')
    """
    parsed = parse_container(content) if isinstance(content, str) else None
    return parsed.value if parsed else content


def pieces(text: str) -> list[str]:
    """Return the items that *text* may list; a text without separators is one item.

    >>> pieces("red, green"), pieces("red")
    (['red', 'green'], ['red'])
    """
    return [piece.strip() for piece in _LISTING.split(text.strip())]


def looks_like_container(text: str) -> bool:
    """Return whether *text* looks like an array or object, well-formed or not.

    >>> [looks_like_container(text) for text in ("['a', 'b']", "[a]", "['a'")]
    [True, True, True]
    >>> [looks_like_container(text) for text in ("[Breaking] news", "a")]
    [False, False]
    """
    plain = text.strip(" \t\r\n'\"`")
    closing = {"[": "]", "{": "}"}.get(plain[:1])
    # A first bracket that is closed inside the text, as in `[Breaking] news`, is prose.
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


# Longest first: a fence of three backticks also begins with one backtick.
_FENCES = ("```", "~~~", "**", '"""', "'''", "`")
_CONTAINER_FENCES = (*_FENCES, "'")


def _without_fence(text: str, marks: Iterable[str] = _FENCES) -> str:
    """Return *text* without a surrounding Markdown fence or quotes that JSON does not
    have; without either, return *text* itself.

    Raises:
        UnreadableError: there is a backslash in such quotes, which may or may not
            escape the next character.
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


_LANGUAGE = lazy_pattern(r"^[\w+-]*[ \t]*\r?\n?")


def _decode_string(text: str) -> str | None:
    """Decode *text*, a JSON string with or without its outer quotes: ``{\\"a\\": 1}``."""
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


_ESCAPED = lazy_pattern(r'[\[{](?:\s|\\[nrt])*\\"')
_LENIENT = json.JSONDecoder(strict=False)


def cut_off(where: str) -> TruncatedInputError:
    """Return the error for truncated arguments; *where* continues its message, as in
    ``end inside a string``.
    """
    return TruncatedInputError(
        f"The arguments {where}",
        suggested_action="Send the whole call again as one complete JSON object; "
        "shorten long values if needed",
    )


def too_deep() -> SkillInputError:
    """Return the error for arguments with too many levels; Python's json also has a
    limit.
    """
    return SkillInputError(
        "The arguments are nested deeper than JSON can be read here",
        suggested_action="Send arguments with fewer levels of objects and arrays",
    )


def fail(error: UnreadableError, quoting: bool) -> NoReturn:
    """Raise the library's public error for *error*; with *quoting*, the message quotes
    the text.
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
    # OpenAI-compatible servers send this for a call without arguments; the schema
    # decides whether that is enough.
    if text in ("", "null", "None"):
        return Parsed({}, (EMPTY_TEXT,))
    without_comma = decode_with_last_comma(text)
    if without_comma is not None:
        return Parsed(without_comma, (TRAILING_COMMA,))
    try:
        if options.literals:
            parsed = Parsed(decode(text, literals=True))
        else:
            value, plain = decode_valid(text)
            parsed = Parsed(value, plain=plain)
    except RecursionError:
        raise UnreadableError(TOO_DEEP) from None
    except ValueError as error:
        # CPython's int() has a limit of 4,300 digits and raises a ValueError above it.
        if "digits" in str(error):
            raise UnreadableError("a number has thousands of digits") from None
        parsed = _parse_malformed(text, options)
    # Models that write JSON inside JSON sometimes encode the whole text once more.
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

    A model that escapes only the quotes writes the path `C:\\\\temp` as it is in JSON;
    decoded, the path holds a tab.
    """
    is_container = text.lstrip()[:1] in ("{", "[")
    if "\\" in text and is_container and has_unclear_escape(text):
        raise UnreadableError(TWO_READINGS)
    return _parse(text, options.for_inner_text())


def _may_hold_surrogates(text: str) -> bool:
    """Return whether the value of *text* may contain a surrogate, literal or escaped."""
    if "\\u" in text and _SURROGATE_ESCAPE.search(text):
        return True
    return not text.isascii() and not is_unicode(text)


# RFC 8259, section 7: a pair of surrogates is a character beyond U+FFFF.
_SURROGATE_ESCAPE = lazy_pattern(r"\\u[dD][89a-fA-F]")


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
    """Parse *text*, which is not JSON: it is inside a fence or quotes, in a call form,
    or with malformed syntax.
    """
    content = _without_fence(text)
    if content != text and content.strip()[:1] in ("{", "[", '"', "'"):
        # One level more than for strings, because the innermost string may hold a
        # fence.
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
    # Imported here because its patterns take a fifth of the import time, and few texts
    # need them.
    from skillruntime.contract.reading.call_forms import calls_of_text

    calls = calls_of_text(
        text,
        may_close=options.may_close,
        names=options.names,
        required=options.required,
        tool=options.tool,
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
    return Parsed(call.value, call.rules, call.name, call.strings, call.holds)


_WORD_IN_BRACKETS = lazy_pattern(r"\[/?[^\W\d]")
_ONE_CALL = "Send one call at a time, each as exactly one JSON object"
_SEVERAL_OBJECTS = "there is more than one object in one text"


def several_calls(count: int) -> SkillInputError:
    """Return the error for *count* calls in one text; running only one would lose the
    others.
    """
    return SkillInputError(
        f"The arguments are not one JSON object: there are {count} calls in one text",
        suggested_action=_ONE_CALL,
    )


def _parse_whole(text: str, options: _Options) -> Parsed:
    """Parse *text*, which is one value, possibly repeated."""
    parser = LenientParser(text, may_close=options.may_close)
    value = parser.value(0)
    parser.space()
    # Servers and models repeat one object (simonw/llm#1130, 64bit/async-openai#329),
    # and servers that assemble a call from parts write an empty one before it
    # (ogx-ai/ogx#5462).
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
