r"""Read calls in the chat templates of open models, by a table with a row for each
form.

A template writes the tool's name and then the parameters, either each as a text between
two marks, or all as one JSON object. `parameters.py` interprets the text of a parameter
by the schema. The formats are from the models' published chat templates; the comment of
each row names the models.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from itertools import islice
from typing import NamedTuple

from skillruntime.contract.reading.chat_marks import DSML
from skillruntime.contract.reading.json_text import LenientParser, UnreadableError
from skillruntime.lazy_patterns import lazy_pattern

_TOOL = r"(?P<name>[^\W\d][\w.:/-]{0,120})"
_KEY = r"""["']?(?P<key>[^<>"'=\n]{1,120})["']?"""


class Template(NamedTuple):
    """One form of a call: the pattern of its beginning, with the group ``name`` for the
    tool's name, and the marks of its parameters.

    *parameter* is the pattern from a parameter's beginning to its value, with the group
    ``key``; *value_end* and *closing* are the end marks of the value and of the whole
    call. Without *parameter*, one JSON object follows. With *breaks*, the template
    itself writes each value on lines of its own. Without *closes*, the end of the text
    ends the call too. With *spaced_keys*, keys have no quotes and may hold spaces.
    """

    opening: re.Pattern[str]
    parameter: re.Pattern[str] | None = None
    value_end: str = ""
    closing: str = ""
    breaks: bool = False
    closes: bool = True
    spaced_keys: bool = False


def _in_elements(
    opening: str, parameter: str, namespace: str, tag: str, *, breaks: bool = False
) -> Template:
    return Template(
        opening=lazy_pattern(rf"<{namespace}{opening}(?P<is_closed>/?)>"),
        parameter=lazy_pattern(rf"<{namespace}{parameter}>"),
        value_end=f"</{namespace}parameter>",
        closing=f"</{namespace}{tag}>",
        breaks=breaks,
    )


_FUNCTION = rf"(?:function|parameter(?=[^<>]+>\s*<parameter=))={_TOOL}\s*"
_INVOKE = rf"""invoke\s+name\s*=\s*["']?{_TOOL}["']?\s*"""
_PARAMETER = rf"parameter\s+name\s*=\s*+{_KEY}"
_DSML_PARAMETER = rf"""{_PARAMETER}(?:\s+string="(?P<string>true|false)")?\s*"""
_DEEPSEEK_CALL = "<\uff5ctool\u2581call\u2581begin\uff5c>"
_DEEPSEEK_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
_GLM_PARAMETER = lazy_pattern(
    r"<arg_key>\s*+(?P<key>[^<>\n]{1,120}?)\s*</arg_key>\s*<arg_value>"
)
TEMPLATES: tuple[Template, ...] = (
    # Qwen3-Coder, also Nemotron 3 and Step 3.5; Llama 3 writes an object between the
    # same marks. The first mark may also be a parameter's mark (signalnine/q27#24).
    _in_elements(_FUNCTION, rf"parameter={_KEY}\s*", "", "function", breaks=True),
    # MiniMax M2, and Claude's older form.
    _in_elements(_INVOKE, rf"{_PARAMETER}\s*", "", "invoke"),
    _in_elements(_INVOKE, rf"{_PARAMETER}\s*", "antml:", "invoke"),
    # DeepSeek V3.2 and V4, which also say for each parameter whether it is a string;
    # V4.1, with a space in each tag.
    _in_elements(_INVOKE, _DSML_PARAMETER, DSML, "invoke"),
    _in_elements(_INVOKE, _DSML_PARAMETER, f"{DSML} ", "invoke"),
    # GLM 4.5 to 4.7.
    Template(
        lazy_pattern(rf"<tool_call>\s*{_TOOL}\s*(?=<arg_key>|</tool_call>|\{{)"),
        _GLM_PARAMETER,
        "</arg_value>",
        "</tool_call>",
    ),
    # The same without its mark, which a server consumed as a token; the name may be
    # before it (zai-org/GLM-5#84).
    Template(
        lazy_pattern(r"(?P<name>)(?=<arg_key>)"),
        _GLM_PARAMETER,
        "</arg_value>",
        "</tool_call>",
        closes=False,
    ),
    # Kimi K3 says the type of each parameter, and escapes names as XML does. Types
    # other than `string` are JSON.
    Template(
        lazy_pattern(rf"""<\|open\|>call\s+tool="{_TOOL}"[^<>\n]{{0,80}}<\|sep\|>"""),
        lazy_pattern(
            r"""<\|open\|>argument\s+key="(?P<key>[^"\n]{1,120})"\s+"""
            r"""type="(?P<type>\w{1,20})"<\|sep\|>"""
        ),
        "<|close|>argument<|sep|>",
        "<|close|>call<|sep|>",
    ),
    # The same with the tags of other models; an object follows.
    Template(
        lazy_pattern(
            rf"""<(?:function|tool|tool_call)\s+name\s*=\s*["']?{_TOOL}["']?\s*>"""
        )
    ),
    # Kimi K2: the name has a prefix and a number, `functions.get_weather:0`.
    Template(
        lazy_pattern(
            rf"<\|tool_call_begin\|>\s*{_TOOL}\s*<\|tool_call_argument_begin\|>"
        )
    ),
    # DeepSeek V3 and R1, which write the call's kind first and fence the object; V3.1,
    # which does neither.
    Template(lazy_pattern(f"{_DEEPSEEK_CALL}function{_DEEPSEEK_SEPARATOR}{_TOOL}")),
    Template(lazy_pattern(f"{_DEEPSEEK_CALL}{_TOOL}{_DEEPSEEK_SEPARATOR}")),
    # Mistral from its 11th tokenizer on; earlier ones write an array after a mark.
    Template(
        lazy_pattern(
            rf"\[TOOL_CALLS\]\s*{_TOOL}(?:\[CALL_ID\]\w+)?(?:\[ARGS\]|(?=\s*\{{))"
        )
    ),
    # Gemma 4 and FunctionGemma:
    # `<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>`.
    Template(
        lazy_pattern(rf"<(?:\|tool_call|start_function_call)>\s*call:{_TOOL}(?=\{{)"),
        spaced_keys=True,
    ),
    # Harmony without its tokens, which a server removed; complete harmony is read by
    # message.
    Template(lazy_pattern(r"to=(?P<name>functions\.[\w.:/-]{1,120})\s+(?:json\s*)?")),
)


def _following(template: Template) -> re.Pattern[str]:
    """Return the pattern of an end mark that is followed by the next parameter or the
    end of the call.
    """
    assert template.parameter is not None
    behind = [template.parameter.pattern, re.escape(template.closing)]
    if not template.closes:
        behind.append(r"\Z")
    alternatives = "|".join(re.sub(r"\?P<\w+>", "?:", part) for part in behind)
    return lazy_pattern(rf"{re.escape(template.value_end)}(?=\s*+(?:{alternatives}))")


_WITH_PARAMETERS = [template for template in TEMPLATES if template.parameter]
_FOLLOWING = {template: _following(template) for template in _WITH_PARAMETERS}
# The marks at which parameters begin and end.
_PARTS = {
    template: lazy_pattern(
        f"{template.parameter.pattern}|{re.escape(template.value_end)}"
    )
    for template in _WITH_PARAMETERS
    if template.parameter
}


class Declared(NamedTuple):
    """The names of a tool's parameters, and of its required parameters."""

    names: Collection[str] = ()
    required: Collection[str] = ()


def read_parameters(
    text: str, opening: re.Match[str], template: Template, declared: Declared
) -> tuple[dict[str, str], dict[str, bool], int]:
    """Return the parameters of the call that begins with *opening*, and the position
    after the call.

    The parameters are two mappings by name: the texts, and whether they are strings,
    for those whose template says so.

    Raises:
        UnreadableError: a mark is not closed, a name comes twice, or there is other
            text between two parameters.
    """
    if opening.groupdict().get("is_closed"):
        return {}, {}, opening.end()
    assert template.parameter is not None
    position = opening.end()
    call = _Call(text, template, text.rfind(template.closing, position), declared)
    texts: dict[str, str] = {}
    strings: dict[str, bool] = {}
    names: set[str] = set()
    import html  # its table of names is only needed for such calls

    while True:
        while text[position : position + 1].isspace():
            position += 1
        if text.startswith(template.closing, position):
            return texts, strings, position + len(template.closing)
        if position == len(text) and texts and not template.closes:
            return texts, strings, position
        match = template.parameter.match(text, position)
        if match is None:
            rest = text[position : position + 100]
            if not rest:
                raise UnreadableError("end inside a call", cut=True)
            raise UnreadableError("expected a parameter, got {}", rest)
        key = html.unescape(match["key"].strip())
        if key in texts:
            raise UnreadableError("a parameter comes twice: {}", key)
        names.add(key)
        value, position = _read_value(call, match.end(), names)
        texts[key] = without_breaks(value, template.breaks)
        is_string = _says_string(match.groupdict())
        if is_string is not None:
            strings[key] = is_string


def _says_string(groups: dict[str, str | None]) -> bool | None:
    """Return whether the mark of a parameter says that its value is a string; ``None``
    if the mark does not say.
    """
    if groups.get("string"):
        return groups["string"] == "true"
    if groups.get("type"):
        return groups["type"] == "string"
    return None


class _Call(NamedTuple):
    """A call whose parameters are being read: the text, the form, the position of the
    text's last closing mark (-1 if there is none), and the tool's parameters.
    """

    text: str
    template: Template
    end: int
    declared: Declared


def _read_value(call: _Call, start: int, present: Collection[str]) -> tuple[str, int]:
    """Return the value that begins at *start*, and the position after its end mark.

    A value ends at the first end mark that is followed by the next parameter or the end
    of the call; an end mark before other text belongs to the value. *present* are the
    parameters so far.

    Raises:
        UnreadableError: the value does not end, or contains the mark of a parameter
            that may belong to the call.
    """
    text, template = call.text, call.template
    end = _unclosed_end(call, start, present)
    if end is not None:
        return text[start:end], end
    match = _FOLLOWING[template].search(text, start)
    if match is None:
        _, mark, behind = text[start:].partition(template.value_end)
        if mark and behind.strip():
            raise UnreadableError("expected a parameter, got {}", behind[:100])
        raise UnreadableError("end inside a parameter", cut=True)
    value = text[start : match.start()]
    if template.value_end in value:
        _check_inner(value, template, present)
    if template.breaks and _ENDS_INSIDE_LINE.fullmatch(value):
        # Qwen writes the end mark on a separate line: this mark may belong to the
        # value, whose rest would be lost (raullenchai/Rapid-MLX#1536).
        raise UnreadableError("a value ends inside a line, which may go on")
    return value, match.end()


def _unclosed_end(call: _Call, start: int, present: Collection[str]) -> int | None:
    """Return the end of the value at *start* if its end mark is missing: the next
    parameter or the end of the call. Return ``None`` if the mark is not missing.

    The end mark is missing if the next parameter's mark begins a line, that parameter
    is declared, required and absent so far, and the call lacks as many end marks as it
    has unclosed parameters. Otherwise the next parameter's mark is a part of the value.
    vLLM reads Qwen3-Coder's calls in the same way.

    Raises:
        UnreadableError: these conditions hold, except that the parameter is optional.
    """
    text, template, declared = call.text, call.template, call.declared
    first = _PARTS[template].search(text, start)
    if call.end < 0 or (first and first["key"] is None):
        return None
    if not _CLOSING_MARKS.fullmatch(text, call.end + len(template.closing)):
        return None
    if first is None:
        return call.end
    found = _PARTS[template].finditer(text, start, call.end)
    marks = list(islice(found, _MOST_MARKS))
    if not marks or len(marks) == _MOST_MARKS:
        return None
    opened_inside = _opened_inside(marks)
    if not _lacks_end_of_each(marks, opened_inside):
        return None
    names_inside: set[str] = set()
    for mark in opened_inside:
        name = mark["key"].strip()
        is_absent = name not in present and name not in names_inside
        begins_line = text[mark.start() - 1] == "\n"
        if name not in declared.names or not is_absent or not begins_line:
            return None
        if name not in declared.required:
            raise UnreadableError("a value may hold the next parameter: {}", mark[0])
        names_inside.add(name)
    return first.start()


def _lacks_end_of_each(
    marks: list[re.Match[str]], opened_inside: list[re.Match[str]]
) -> bool:
    """Return whether *marks*, which follow the beginning of a value, lack one end mark
    before each of *opened_inside*, and one for the last parameter if it is open.
    """
    openings = sum(mark["key"] is not None for mark in marks)
    endings = len(marks) - openings
    missing = 1 + openings - endings  # the value before the marks is open too
    is_last_open = marks[-1]["key"] is not None
    return missing == len(opened_inside) + is_last_open


def _opened_inside(marks: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the *marks* after the beginning of a value that open a parameter while the
    previous parameter is still open.
    """
    inside: list[re.Match[str]] = []
    is_open = True
    for mark in marks:
        is_opening = mark["key"] is not None
        if is_opening and is_open:
            inside.append(mark)
        is_open = is_opening
    return inside


def _check_inner(value: str, template: Template, present: Collection[str]) -> None:
    """Refuse a *value* that contains the mark of a parameter that is not yet *present*."""
    assert template.parameter is not None
    for match in template.parameter.finditer(value):
        if match["key"].strip() not in present:
            raise UnreadableError("a value may hold the next parameter: {}", match[0])


# Closing tags and tokens, which may follow a call.
_CLOSING_MARKS = lazy_pattern(r"(?:\s|</[\w:.-]{1,40}>|<\|\w{1,40}\|>)*")
_MOST_MARKS = 200
# A value of several lines whose end mark is on the last line.
_ENDS_INSIDE_LINE = lazy_pattern(r"\r?\n[^\n]*\n.*[^\n]", re.DOTALL)


def without_breaks(text: str, breaks: bool) -> str:
    """Return *text* without one line break at each end.

    With *breaks*, the template writes both line breaks. Without, as in GLM's template,
    a line break at only one end is a part of the value, because files end with a line
    break.
    """
    has_both = len(text) > 1 and text[0] in "\r\n" and text[-1] == "\n"
    if not breaks and not has_both:
        return text
    return _LAST_BREAK.sub("", _FIRST_BREAK.sub("", text))


_FIRST_BREAK = lazy_pattern(r"\A\r?\n")
_LAST_BREAK = lazy_pattern(r"\r?\n\Z")
_ARGUMENT = lazy_pattern(r"(?P<key>[^\W\d]\w*)\s*=(?!=)")


def python_call(parser: LenientParser) -> dict[str, object]:
    """Parse the keyword arguments of the Python call in whose parentheses *parser* is,
    and leave *parser* after the closing parenthesis.

    Raises:
        UnreadableError: an argument has no keyword or is not a literal, or a name comes
            twice.
    """
    arguments: dict[str, object] = {}
    while parser.peek("inside a call") != ")":
        match = _ARGUMENT.match(parser.text, parser.position)
        if match is None:
            raise UnreadableError("expected a keyword argument, got {}", parser.rest())
        key = match["key"]
        if key in arguments:
            raise UnreadableError("a parameter comes twice: {}", key)
        parser.position = match.end()
        arguments[key] = parser.value(1)
        character = parser.peek("inside a call")
        if character == ",":
            parser.position += 1
        elif character != ")":
            raise UnreadableError("expected a comma, got {}", parser.rest())
    parser.position += 1
    return arguments
