r"""How open models write a call in their chat templates: one row of a table for each.

A template names the tool and then has its parameters, each as the text between two
marks, or one JSON object. What the text of a parameter means is decided by the schema,
in `parameters.py`. The formats are those of the models' published chat templates; the
comment of a row names the models.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from skillruntime.contract.reading.json_text import LenientParser, UnreadableError

_TOOL = r"(?P<name>[^\W\d][\w.:/-]{0,120})"
_KEY = r"""["']?(?P<key>[^<>"'=\n]{1,120})["']?"""
_DSML = "\uff5cDSML\uff5c"


class Template(NamedTuple):
    """One form of a call: the pattern it begins with, which holds the tool's ``name``,
    and the marks of its parameters.

    *parameter* is the pattern from one parameter's beginning to its value and holds its
    ``key``; *value_end* and *closing* are what its value and the whole call end with.
    Without *parameter*, one JSON object follows. With *breaks*, the template itself
    writes each value on lines of its own.
    """

    opening: re.Pattern[str]
    parameter: re.Pattern[str] | None = None
    value_end: str = ""
    closing: str = ""
    breaks: bool = False


def _in_elements(
    opening: str, parameter: str, namespace: str, tag: str, *, breaks: bool = False
) -> Template:
    return Template(
        opening=re.compile(rf"<{namespace}{opening}>"),
        parameter=re.compile(rf"<{namespace}{parameter}>"),
        value_end=f"</{namespace}parameter>",
        closing=f"</{namespace}{tag}>",
        breaks=breaks,
    )


_FUNCTION = rf"(?:function|parameter(?=[^<>]+>\s*<parameter=))={_TOOL}\s*"
_INVOKE = rf"""invoke\s+name\s*=\s*["']?{_TOOL}["']?\s*"""
_PARAMETER = rf"parameter\s+name\s*=\s*+{_KEY}"
_DEEPSEEK_CALL = "<\uff5ctool\u2581call\u2581begin\uff5c>"
_DEEPSEEK_SEPARATOR = "<\uff5ctool\u2581sep\uff5c>"
TEMPLATES: tuple[Template, ...] = (
    # Qwen3-Coder, also Nemotron 3 and Step 3.5; Llama 3 writes an object between the
    # same marks. The first mark may be that of a parameter too (signalnine/q27#24).
    _in_elements(_FUNCTION, rf"parameter={_KEY}\s*", "", "function", breaks=True),
    # MiniMax M2, and Claude's older form.
    _in_elements(_INVOKE, rf"{_PARAMETER}\s*", "", "invoke"),
    _in_elements(_INVOKE, rf"{_PARAMETER}\s*", "antml:", "invoke"),
    # DeepSeek V3.2 and V4, which also say of each parameter whether it is a string.
    _in_elements(
        _INVOKE,
        rf"""{_PARAMETER}(?:\s+string="(?P<string>true|false)")?\s*""",
        _DSML,
        "invoke",
    ),
    # GLM 4.5 to 4.7.
    Template(
        re.compile(rf"<tool_call>\s*{_TOOL}\s*(?=<arg_key>|</tool_call>|\{{)"),
        re.compile(r"<arg_key>\s*+(?P<key>[^<>\n]{1,120}?)\s*</arg_key>\s*<arg_value>"),
        "</arg_value>",
        "</tool_call>",
    ),
    # As the ones above, in the words of other models; an object follows.
    Template(
        re.compile(
            rf"""<(?:function|tool|tool_call)\s+name\s*=\s*["']?{_TOOL}["']?\s*>"""
        )
    ),
    # Kimi K2: the name has a prefix and a number, `functions.get_weather:0`.
    Template(
        re.compile(rf"<\|tool_call_begin\|>\s*{_TOOL}\s*<\|tool_call_argument_begin\|>")
    ),
    # DeepSeek V3 and R1, which write the kind of the call first and fence the object;
    # V3.1, which does neither.
    Template(re.compile(f"{_DEEPSEEK_CALL}function{_DEEPSEEK_SEPARATOR}{_TOOL}")),
    Template(re.compile(f"{_DEEPSEEK_CALL}{_TOOL}{_DEEPSEEK_SEPARATOR}")),
    # Mistral from its 11th tokenizer on; what earlier ones write is an array behind a
    # mark.
    Template(
        re.compile(
            rf"\[TOOL_CALLS\]\s*{_TOOL}(?:\[CALL_ID\]\w+)?(?:\[ARGS\]|(?=\s*\{{))"
        )
    ),
    # Gemma 4 and FunctionGemma:
    # `<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>`.
    Template(
        re.compile(rf"<(?:\|tool_call|start_function_call)>\s*call:{_TOOL}(?=\{{)")
    ),
    # Harmony whose tokens a server left out; whole, it is read by its messages.
    Template(re.compile(r"to=(?P<name>functions\.[\w.:/-]{1,120})\s+(?:json\s*)?")),
)


def read_parameters(
    text: str, position: int, template: Template
) -> tuple[dict[str, str], dict[str, bool], int]:
    """Return the parameters of the call whose opening ends at *position*, and the
    position behind the call.

    The parameters are two mappings by name: of their texts, and, where the template
    says it, of whether they are strings.

    Raises:
        UnreadableError: a mark is not closed, a name comes twice, or there is other
            text between two parameters (also where a value holds the mark it ends
            with).
    """
    assert template.parameter is not None
    texts: dict[str, str] = {}
    strings: dict[str, bool] = {}
    while True:
        while text[position : position + 1].isspace():
            position += 1
        if text.startswith(template.closing, position):
            return texts, strings, position + len(template.closing)
        match = template.parameter.match(text, position)
        if match is None:
            rest = text[position : position + 100]
            if not rest:
                raise UnreadableError("end inside a call", cut=True)
            raise UnreadableError("expected a parameter, got {}", rest)
        end = text.find(template.value_end, match.end())
        if end < 0:
            raise UnreadableError("end inside a parameter", cut=True)
        key = match["key"].strip()
        if key in texts:
            raise UnreadableError("a parameter comes twice: {}", key)
        texts[key] = without_breaks(text[match.end() : end], template.breaks)
        is_string = match.groupdict().get("string")
        if is_string:
            strings[key] = is_string == "true"
        position = end + len(template.value_end)


def without_breaks(text: str, breaks: bool) -> str:
    """Return *text* without one line break at each end.

    With *breaks*, the template writes both. Else, as in GLM's, a break at one end alone
    is a part of the value: files end with one.
    """
    has_both = len(text) > 1 and text[0] in "\r\n" and text[-1] == "\n"
    if not breaks and not has_both:
        return text
    return _LAST_BREAK.sub("", _FIRST_BREAK.sub("", text))


_FIRST_BREAK = re.compile(r"\A\r?\n")
_LAST_BREAK = re.compile(r"\r?\n\Z")
_ARGUMENT = re.compile(r"(?P<key>[^\W\d]\w*)\s*=(?!=)")


def python_call(parser: LenientParser) -> dict[str, object]:
    """Return the keyword arguments of the Python call in whose parentheses *parser*
    stands, and leave *parser* behind them.

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
