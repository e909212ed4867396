r"""Find the calls that a model's text holds, each in one of the forms that are known;
nothing else is read.

The text is walked once, from left to right: what the table of marks knows is skipped,
entered or names the tool; what no mark explains is prose. The law of prose: an object
in it is a call only between two sentences or lines. Of its words only the first of the
sentence beside the object is looked at; what a text says otherwise is not interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from skillruntime.contract.reading.json_text import (
    LITERAL_DECODER,
    TWO_READINGS,
    LenientParser,
    UnreadableError,
)
from skillruntime.contract.reading.prose import (
    fault_after,
    fault_before,
    fault_of_values,
)
from skillruntime.contract.reading.templates import (
    TEMPLATES,
    Template,
    python_call,
    read_parameters,
)
from skillruntime.contract.reading.tool_names import ARGUMENT_KEYS, NAME_KEYS, folded
from skillruntime.contract.repair_rules import (
    CALL_TEMPLATE,
    MARKDOWN_FENCE,
    PYTHON_CALL,
    STRAY_BRACKET,
    TEXT_AROUND,
)

_NAME = r"[^\W\d][\w.:/-]{0,120}"
_KEY_PATTERNS = [re.sub("[_ ]", "[_ ]?", key) for key in NAME_KEYS]
_KEYS = "|".join(sorted(_KEY_PATTERNS, key=len, reverse=True))
# Reasoning, by the tags and tokens that models open and close it with.
_THOUGHT = (
    r"think|thinking|thoughts?|reasoning|reflection|analysis|scratchpad|seed:think"
)
# What a tool returned, by the tags of chat templates.
_RESULT = (
    r"(?:tool|function)_(?:response|result|output)s?|tool_call_result|observation"
    r"|response|results?|output"
)
# Openings without a pair of tags, and what closes each. A tool's turn is closed by the
# token that ends any turn.
_OUTPUTS = "<\uff5ctool\u2581outputs\u2581"
_OUTPUT = "<\uff5ctool\u2581output\u2581"
_TOKENS = {
    "\u25c1think\u25b7": "\u25c1/think\u25b7",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "[THINK]": "[/THINK]",
    "[TOOL_RESULTS]": "[/TOOL_RESULTS]",
    "<|START_TOOL_RESULT|>": "<|END_TOOL_RESULT|>",
    f"{_OUTPUTS}begin\uff5c>": f"{_OUTPUTS}end\uff5c>",
    f"{_OUTPUT}begin\uff5c>": f"{_OUTPUT}end\uff5c>",
    "<|im_start|>tool": "<|im_end|>",
    "<|start_header_id|>ipython": "<|eot_id|>",
    "<|start_header_id|>tool": "<|eot_id|>",
    "<|observation|>": "<|assistant|>",
    "<|tool_response>": "<tool_response|>",
    "<|channel>thought": "<channel|>",
}
_THOUGHT_CLOSERS = [
    re.escape(closer)
    for closer in _TOKENS.values()
    if re.search("(?i)think|thought", closer)
]
_TOOL_TAGS = (
    r"(?:antml:|minimax:|\uff5cDSML\uff5c)?"
    r"(?:(?:tool|function)_?(?:calls?|uses?)|functions?|tools?|calls?|invoke)|"
) + "|".join(ARGUMENT_KEYS)
_CLOSER = re.compile(rf"</(?i:{_THOUGHT})>|{'|'.join(_THOUGHT_CLOSERS)}")
# The header of a message in OpenAI's harmony. The prompt may have written the beginning
# of the first, `<|start|>assistant`.
_HEADER = (
    r"(?:<\|start\|>[^<]{0,200})?(?:<\|channel\|>[^<]{0,200})?"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)
# ReAct (Yao et al., 2022), and its relatives.
_SECTION = (
    r"observation|(?:tool|function)[ _](?:output|result|response)s?|final[ ]answer"
)
# How the calls of `templates.py` begin.
_TEMPLATE = (
    r"<function=|<parameter=[^<>]{1,120}>\s*<parameter="
    r"|<(?:\|tool_call|start_function_call)>\s*call:"
    r"|<(?:antml:|\uff5cDSML\uff5c)?invoke\s|<tool_call>\s*[^\W\d]"
    r"|<(?:function|tool|tool_call)\s+name|<\|tool_call_begin"
    r"|<\uff5ctool\u2581call\u2581begin|\[TOOL_CALLS\]\s*[^\W\d]"
    r"|\bto=functions\.\S{1,120}\s+(?:json\s*)?\{"
)
_MARK = (
    r"```[\w+-]*|~~~\w*|</?s>|</s\Z"
    r"|<(?:(?:start|end)_of_turn|tool_call\||end_function_call)>"
    r"|<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>"
    r"|\[/?[A-Z][A-Z_]{2,}\]|functools(?=\[)"
)
# What the walk stops at. The name of the group says which of `_READERS` reads on.
_EVENT = re.compile(
    rf"(?P<object>\{{|\[(?=\s*\{{))"
    rf"|(?P<header>{_HEADER})"
    rf"|<(?P<thought>(?i:{_THOUGHT}))>"
    rf"|(?P<closer>{_CLOSER.pattern})"
    rf"|<(?P<result>(?i:{_RESULT}))(?:\s[^<>]{{0,200}})?>"
    rf"|(?P<token>{'|'.join(map(re.escape, _TOKENS))})"
    rf"|^[ \t*]*(?P<section>(?i:{_SECTION}))[ \t*]*:"
    rf"|(?P<template>(?={_TEMPLATE}))"
    rf"|<(?P<tag>(?i:{_KEYS}))>\s*(?P<in_tag>{_NAME})\s*</(?P=tag)>"
    rf"|^[ \t>*-]*(?P<key>(?i:{_KEYS}))[ \t*]*[:=]"
    rf"[ \t*`\"]*(?P<on_line>{_NAME})[ \t*`\"]*$"
    rf"|</?(?P<tool>(?i:{_TOOL_TAGS}))>"
    rf"|(?P<mark>{_MARK})",
    re.MULTILINE,
)
_SECTION_END = (
    r"^(?=[ \t*]*(?:Thought|Action|Final Answer)[ \t*]*:"
    r"|[ \t]*(?:<tool_call|<function=|<invoke|\[TOOL_))"
)
_MESSAGE_END = re.compile(r"<\|(?:end|call|return|start)\|>")
_RECIPIENT = re.compile(r"\bto=(?P<name>functions\.[^\s<]+)")
_PYTHON = re.compile(rf"\s*(?P<bracket>\[\s*)?(?P<name>{_NAME})\(")
_PYTHON_MARKS = frozenset(
    {"", "<|python_tag|>", "```tool_code", "<tool_call>", "<|tool_call_start|>"}
)
_OBJECT = re.compile(r"\s*\{")
_WRAPPER = re.compile(r"<([^<>/]+)>")
MAX_STEPS = 20_000
_CONTINUED = re.compile(r"\}\s*,")
_ARGUMENTS_LABEL = rf"{'|'.join(ARGUMENT_KEYS)}|(?:action|tool|function) \w+"
_ARGUMENTS_LINE = re.compile(rf"\s{{0,9}}\*{{0,2}}(?i:{_ARGUMENTS_LABEL})\**[:=]")


@dataclass(slots=True)
class FoundCall:
    """A call in a text: the tool's name where its form gives one, and its arguments.

    ``value`` is JSON, or, where ``strings`` is given, the texts of a template's
    parameters by name. ``fault`` says why the call is not to be run.
    """

    name: str
    value: Any
    rules: tuple[str, ...]
    start: int
    end: int
    strings: dict[str, bool] | None = None
    template: Template | None = None
    fault: UnreadableError | None = None


@dataclass(slots=True)
class _Walk:
    """A walk through *text*: the calls found so far, and what stands between the last
    of them and ``position``.
    """

    text: str
    may_close: bool
    names: Collection[str]
    tool: str
    position: int = 0
    found: list[FoundCall] = field(default_factory=list)
    # Calls that a result follows.
    answered: list[FoundCall] = field(default_factory=list)
    name: str = ""
    # The last mark, the prose before it, where the prose after it begins, and whether
    # that prose is empty.
    mark: str = ""
    before_mark: str = ""
    since: int = 0
    is_bare: bool = True
    # All prose beside the calls.
    beside: list[str] = field(default_factory=list)
    # What follows the last call: prose, and "" for a mark.
    after: list[str] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """The prose after the last mark."""
        return self.text[self.since : self.position]

    def skip_to(self, position: int) -> None:
        """Continue at *position*; what came before it is not beside what follows."""
        self.position = position
        self.since = position
        self.before_mark = ""
        self.mark = ""
        self.name = ""
        self.is_bare = True

    def forget(self) -> None:
        """Leave out all that came before, for it was reasoning."""
        self.found = []
        self.answered = []
        self.beside = []
        self.after = []

    def answer(self) -> None:
        """Record that a result follows the calls so far."""
        self.answered = self.found or self.answered
        self.found = []

    def add(self, call: FoundCall) -> None:
        """Record *call*, and continue after it."""
        self.found.append(call)
        self.after = []
        self.skip_to(call.end)


def calls_of_text(
    text: str, *, may_close: bool = False, names: Collection[str] = (), tool: str = ""
) -> list[FoundCall]:
    """Return the calls in *text*, in their order. Calls that a result follows are
    returned only if no call comes after that result.

    *names* are the declared parameters, *tool* is the tool's name, or empty; with
    *may_close*, an outermost object at the end is closed.

    Raises:
        UnreadableError: an object cannot be parsed, or a mark is not closed.
    """
    walk = _Walk(text, may_close, names, tool)
    last_closer = max((match.end() for match in _CLOSER.finditer(text)), default=0)
    steps = 0
    while walk.position < len(text):
        steps += 1
        if steps > MAX_STEPS:
            raise UnreadableError(
                f"the text has more than {MAX_STEPS} marks and objects"
            )
        try:
            _step(walk)
        except UnreadableError:
            if walk.position >= last_closer:
                raise
            # The text that could not be parsed was a thought that the prompt had
            # opened.
            walk.skip_to(last_closer)
            walk.forget()
    if len(walk.found) == 1:
        _judge(walk, walk.found[0])
    return walk.found or walk.answered


def _judge(walk: _Walk, call: FoundCall) -> None:
    """Record what stands after or beside the only *call*: the rule by which it is
    repaired, or the fault.
    """
    rest = walk.text[call.end :]
    if _is_continued(walk, call, rest):
        call.fault = UnreadableError("after the call comes {}", rest)
    rule, fault = fault_after(walk.after, rest, call.name)
    # After `{"a": {"b": 1}, "c": 2` the bracket too many may be the inner one.
    if rule == STRAY_BRACKET and _CONTINUED.search(walk.text, call.start, call.end):
        fault = UnreadableError("after the object comes {}", rest)
    if rule:
        others = [other for other in call.rules if other != TEXT_AROUND]
        call.rules = (*others, rule)
    if call.fault is None:
        call.fault = fault or fault_of_values(walk.beside, call.value, walk.names)


def _is_continued(walk: _Walk, call: FoundCall, rest: str) -> bool:
    """Return whether the *rest* of the text may be a part of *call*."""
    if PYTHON_CALL in call.rules and any(map(str.strip, walk.after)):
        return True
    if call.template is None:
        return False
    # A value that holds the mark that it ends with.
    return call.template.value_end in rest or call.template.closing in rest


def _step(walk: _Walk) -> None:
    """Read the prose up to the next mark or object, and that mark or object."""
    call = _python_call_at(walk)
    if call is not None:
        _read_python(walk, call)
        return
    match = _EVENT.search(walk.text, walk.position)
    if match is None:
        _add_prose(walk, len(walk.text))
        return
    _add_prose(walk, match.start())
    _READERS[str(match.lastgroup)](walk, match)


def _python_call_at(walk: _Walk) -> re.Match[str] | None:
    """Return the beginning of a Python call at the position, where only marks that may
    open one stand before it.
    """
    if walk.before_mark or walk.found or not walk.is_bare:
        return None
    if walk.mark not in _PYTHON_MARKS:
        return None
    return _PYTHON.match(walk.text, walk.position)


def _add_prose(walk: _Walk, end: int) -> None:
    prose = walk.text[walk.position : end]
    walk.position = end
    if prose:
        walk.is_bare = walk.is_bare and not prose.strip()
        walk.beside.append(prose)
        walk.after.append(prose)


def _read_mark(walk: _Walk, match: re.Match[str]) -> None:
    if not walk.is_bare:
        walk.before_mark = walk.prose
    walk.mark = match[0]
    walk.position = match.end()
    walk.since = match.end()
    walk.is_bare = True
    walk.after.append("")


def _read_tag(walk: _Walk, match: re.Match[str]) -> None:
    """Read the tag of a call or of its arguments.

    An opening tag with the name of a parameter is not a mark.
    """
    is_opening = match[0][1] != "/"
    if is_opening and folded(match["tool"]) in map(folded, walk.names):
        _add_prose(walk, match.end())
    else:
        _read_mark(walk, match)


def _read_object(walk: _Walk, match: re.Match[str]) -> None:
    start = match.start()
    name, fault = fault_before(
        walk.prose, walk.mark, walk.before_mark, walk.names, walk.tool
    )
    name = walk.name or name
    parser = LenientParser(walk.text, start, may_close=walk.may_close)
    try:
        value, parser.position = LITERAL_DECODER.raw_decode(walk.text, start)
    except (ValueError, RecursionError, UnreadableError):
        value = parser.value(0)
    end = parser.position
    parser.space()
    end += len(walk.text[end : parser.position].rstrip())  # comments
    if walk.mark.startswith(("```", "~~~")):
        parser.note(MARKDOWN_FENCE)
    elif start or end < len(walk.text):
        parser.note(TEXT_AROUND)
    objects = value if isinstance(value, list) else [value]
    rules = tuple(parser.rules)
    for arguments in objects:
        walk.add(FoundCall(name, arguments, rules, start, end, fault=fault))


def _read_python(walk: _Walk, match: re.Match[str]) -> None:
    parser = LenientParser(walk.text, match.end())
    value = python_call(parser)
    # JSON's `\/` is a backslash and a slash in Python.
    if "\\/" in walk.text[match.end() : parser.position]:
        raise UnreadableError(TWO_READINGS)
    if match["bracket"]:
        parser.space()
        if not walk.text.startswith("]", parser.position):
            raise UnreadableError("after a call comes {}", parser.rest())
        parser.position += 1
    rules = (PYTHON_CALL, *parser.rules)
    walk.add(FoundCall(match["name"], value, rules, match.start(), parser.position))


def _read_template(walk: _Walk, match: re.Match[str]) -> None:
    start = match.start()
    for template in TEMPLATES:
        opening = template.opening.match(walk.text, start)
        if opening is None:
            continue
        if template.parameter is None or _OBJECT.match(walk.text, opening.end()):
            _read_mark(walk, opening)
            walk.name = opening["name"]
            return
        _add_template_call(walk, opening, template)
        return
    _add_prose(walk, start + 1)


def _add_template_call(walk: _Walk, opening: re.Match[str], template: Template) -> None:
    wrapper = _WRAPPER.fullmatch(walk.mark)
    texts, strings, end = read_parameters(walk.text, opening.end(), template)
    if wrapper and f"</{wrapper[1]}>" not in walk.text[end:]:
        raise UnreadableError("end inside a call", cut=True)
    before = walk.before_mark if walk.is_bare else walk.prose
    _, fault = fault_before("", opening[0], before, walk.names, walk.tool)
    call = FoundCall(
        name=opening["name"],
        value=texts,
        rules=(CALL_TEMPLATE,),
        start=opening.start(),
        end=end,
        strings=strings,
        template=template,
        fault=fault,
    )
    walk.add(call)


def _read_name(walk: _Walk, match: re.Match[str]) -> None:
    """Read a line or an element that names the tool.

    Where a parameter has that key, only a line before the arguments names the tool.
    """
    is_parameter = folded(match["tag"] or match["key"]) in map(folded, walk.names)
    if is_parameter and not _is_before_arguments(walk, match):
        _add_prose(walk, match.end())
        return
    _read_mark(walk, match)
    walk.name = match["in_tag"] or match["on_line"]
    walk.mark = ""


def _is_before_arguments(walk: _Walk, match: re.Match[str]) -> bool:
    if not walk.tool or not match["key"]:
        return False
    return _ARGUMENTS_LINE.match(walk.text, match.end()) is not None


def _read_header(walk: _Walk, match: re.Match[str]) -> None:
    """Enter a message of the assistant to a tool, and skip any other message."""
    header = match[0]
    if not header.startswith("<|start|>"):
        # The prompt wrote the beginning, with the role.
        header = "<|start|>assistant" + walk.prose + header
    recipient = _RECIPIENT.search(header)
    words = re.sub(r"<\|\w+\|>", " ", header).split()
    is_of_assistant = words[0] == "assistant"
    walk.skip_to(match.end())
    if recipient and is_of_assistant and "final" not in words:
        walk.name = recipient["name"]
        walk.mark = header
        return
    if not is_of_assistant:
        walk.answer()
    end = _MESSAGE_END.search(walk.text, match.end())
    walk.skip_to(end.start() if end else len(walk.text))


def _skip_thought(walk: _Walk, match: re.Match[str]) -> None:
    _skip_past(walk, match, rf"</(?i:{match['thought']})>")


def _skip_result(walk: _Walk, match: re.Match[str]) -> None:
    walk.answer()
    _skip_past(walk, match, rf"</(?i:{match['result']})>")


def _skip_token(walk: _Walk, match: re.Match[str]) -> None:
    closer = re.escape(_TOKENS[match[0]])
    if closer not in _THOUGHT_CLOSERS:
        walk.answer()
    _skip_past(walk, match, closer)


def _skip_section(walk: _Walk, match: re.Match[str]) -> None:
    if match["section"].casefold() == "final answer":
        walk.forget()
    walk.answer()
    _skip_past(walk, match, _SECTION_END)


def _skip_past(walk: _Walk, opening: re.Match[str], closer: str) -> None:
    """Skip a section without calls, from its *opening* to its *closer*; all the rest if
    the closer is missing.
    """
    end = re.compile(closer, re.MULTILINE).search(walk.text, opening.end())
    walk.skip_to(end.end() if end else len(walk.text))


def _close_thought(walk: _Walk, match: re.Match[str]) -> None:
    walk.skip_to(match.end())
    walk.forget()


_READERS: dict[str, Callable[[_Walk, re.Match[str]], None]] = {
    "object": _read_object,
    "template": _read_template,
    "header": _read_header,
    "thought": _skip_thought,
    "closer": _close_thought,
    "result": _skip_result,
    "token": _skip_token,
    "section": _skip_section,
    "in_tag": _read_name,
    "on_line": _read_name,
    "tool": _read_tag,
    "mark": _read_mark,
}
