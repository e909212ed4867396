r"""Find the calls in a model's text. Only the known forms of calls are read.

The text is walked once, from left to right. A mark of the table is skipped, entered, or
names the tool; all other text is prose. The law of prose: an object in it is a call
only between two sentences or lines. Only the first words of the sentence beside the
object are looked at; the other words are not interpreted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from skillruntime.contract.reading.chat_marks import (
    CHAT_MARKS,
    ENVELOPE_MARKS,
    Holds,
    Role,
    alternatives,
    closers,
    escaped_marks,
)
from skillruntime.contract.reading.json_text import (
    LITERAL_DECODER,
    TWO_READINGS,
    LenientParser,
    UnreadableError,
)
from skillruntime.contract.reading.prose import (
    fault_after,
    fault_before,
    fault_of_correction,
    fault_of_values,
)
from skillruntime.contract.reading.templates import (
    TEMPLATES,
    Declared,
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
from skillruntime.lazy_patterns import lazy_pattern

_NAME = r"[^\W\d][\w.:/-]{0,120}"
_KEY_PATTERNS = [re.sub("[_ ]", "[_ ]?", key) for key in NAME_KEYS]
_KEYS = "|".join(sorted(_KEY_PATTERNS, key=len, reverse=True))
_THOUGHT = alternatives(Role.THOUGHT_TAG)
_RESULT = alternatives(Role.RESULT_TAG)
_SECTIONS = [mark for mark in CHAT_MARKS if mark.role in (Role.THOUGHT, Role.RESULT)]
_CLOSER = lazy_pattern(rf"</(?i:{_THOUGHT})>|{closers(Role.THOUGHT)}")
# The header of a message in OpenAI's harmony. The prompt may contain the beginning of
# the first, `<|start|>assistant`.
_HEADER = (
    r"(?:<\|start\|>[^<]{0,200})?(?:<\|channel\|>[^<]{0,200})?"
    r"(?:<\|constrain\|>[^<]{0,40})?<\|message\|>"
)
# ReAct (Yao et al., 2022), and its relatives.
_SECTION = (
    r"observation|(?:tool|function)[ _](?:output|result|response)s?|final[ ]answer"
)
# Markdown fences separate the parts of a message, like marks.
_MARK = rf"```[\w+-]*|~~~\w*|{alternatives(Role.MARK)}"
_RESERVED = escaped_marks()
# The places at which the walk stops. The name of the group selects the reader in
# `_READERS`.
_EVENT = lazy_pattern(
    rf"(?P<object>\{{|\[(?=\s*\{{))"
    rf"|(?P<header>{_HEADER})"
    rf"|<(?P<thought>(?i:{_THOUGHT}))>"
    rf"|(?P<closer>{_CLOSER.pattern})"
    rf"|<(?P<result>(?i:{_RESULT}))(?:\s[^<>]{{0,200}})?>"
    rf"|(?P<token>{alternatives(Role.THOUGHT)}|{alternatives(Role.RESULT)})"
    rf"|^[ \t*]*(?P<section>(?i:{_SECTION}))[ \t*]*:"
    rf"|(?P<template>(?={alternatives(Role.CALL)}))"
    rf"|<(?P<tag>(?i:{_KEYS}))>\s*(?P<in_tag>{_NAME})\s*</(?P=tag)>"
    rf"|^[ \t>*-]*(?P<key>(?i:{_KEYS}))[ \t*]*[:=]"
    rf"[ \t*`\"]*(?P<on_line>{_NAME})[ \t*`\"]*$"
    rf"|</?(?P<tool>(?i:{alternatives(Role.CALL_TAG)}))>"
    rf"|(?P<mark>{_MARK})",
    re.MULTILINE,
)
_SECTION_END = (
    r"^(?=[ \t*]*(?:Thought|Action|Final Answer)[ \t*]*:"
    r"|[ \t]*(?:<tool_call|<function=|<invoke|\[TOOL_))"
)
_MESSAGE_END = lazy_pattern(r"<\|(?:end|call|return|start)\|>")
_RECIPIENT = lazy_pattern(r"\bto=(?P<name>functions\.[^\s<]+)")
_PYTHON = lazy_pattern(rf"\s*(?P<bracket>\[\s*)?(?P<name>{_NAME})\(")
_PYTHON_MARKS = frozenset(
    {
        "",
        "<|python_tag|>",
        "<|python_start|>",
        "```tool_code",
        "<tool_call>",
        "<|tool_call_start|>",
    }
)
_IDENTIFIER = lazy_pattern(_NAME)
_OBJECT = lazy_pattern(r"\s*\{")
_WRAPPER = lazy_pattern(r"<([^<>/|]+)>")
MAX_STEPS = 20_000
_CONTINUED = lazy_pattern(r"\}\s*,")
_ARGUMENTS_LABEL = rf"{'|'.join(ARGUMENT_KEYS)}|(?:action|tool|function) \w+"
_ARGUMENTS_LINE = lazy_pattern(rf"\s{{0,9}}\*{{0,2}}(?i:{_ARGUMENTS_LABEL})\**[:=]")


@dataclass(slots=True)
class FoundCall:
    """A call in a text: its arguments, and the tool's name if the form contains it.

    ``value`` is JSON, or, if ``strings`` is set, the texts of a template's parameters
    by name. ``fault`` says why the call must not be run. A call ``is_marked`` if a
    template's marks delimit it; ``holds`` says whether ``value`` is an envelope or the
    arguments, if the marks say so.
    """

    name: str
    value: Any
    rules: tuple[str, ...]
    start: int
    end: int
    strings: dict[str, bool] | None = None
    template: Template | None = None
    fault: UnreadableError | None = None
    is_marked: bool = False
    holds: Holds = ""


@dataclass(slots=True)
class _Walk:
    """A walk through *text*: the calls found so far, and the text between the last call
    and ``position``.
    """

    text: str
    may_close: bool
    names: Collection[str]
    required: Collection[str]
    tool: str
    position: int = 0
    found: list[FoundCall] = field(default_factory=list)
    # Calls that are followed by a result.
    answered: list[FoundCall] = field(default_factory=list)
    name: str = ""
    # The template whose mark named the tool; an object follows.
    template: Template | None = None
    # The last mark, the prose before it, the position at which the prose after it
    # begins, and whether that prose is empty.
    mark: str = ""
    before_mark: str = ""
    since: int = 0
    is_bare: bool = True
    # All prose beside the calls.
    beside: list[str] = field(default_factory=list)
    # The text after the last call: pieces of prose, and "" for each mark.
    after: list[str] = field(default_factory=list)

    @property
    def prose(self) -> str:
        """The prose after the last mark."""
        return self.text[self.since : self.position]

    def skip_to(self, position: int) -> None:
        """Continue at *position*; the text before it is no longer beside the next
        object.
        """
        self.position = position
        self.since = position
        self.before_mark = ""
        self.mark = ""
        self.name = ""
        self.template = None
        self.is_bare = True

    def forget(self) -> None:
        """Discard the calls and prose so far, because they were reasoning."""
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
    text: str,
    *,
    may_close: bool,
    names: Collection[str],
    required: Collection[str],
    tool: str,
) -> list[FoundCall]:
    """Return the calls in *text*, in their order. Calls that are followed by a result
    are returned only if no call comes after the result.

    *names* are the declared parameters, *required* the parameters that a call must
    have, *tool* is the tool's name or empty; with *may_close*, an outermost object at
    the end is closed.

    Raises:
        UnreadableError: an object cannot be parsed, or a mark is not closed.
    """
    walk = _Walk(text, may_close, names, required, tool)
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
            # The unparsable text was reasoning that the prompt had opened.
            walk.skip_to(last_closer)
            walk.forget()
    if len(walk.found) == 1:
        _judge(walk, walk.found[0])
    return walk.found or walk.answered


def _judge(walk: _Walk, call: FoundCall) -> None:
    """Judge the text after and beside the only *call*: record the repair rule or the
    fault.
    """
    rest = walk.text[call.end :]
    if _is_continued(walk, call, rest):
        call.fault = UnreadableError("after the call comes {}", rest)
    is_ended = call.template is not None or not rest.strip()
    if walk.after and not walk.after[0].strip():
        is_ended = True  # the next mark follows
    if call.is_marked and is_ended:
        # The marks delimit the call, regardless of the text beside it.
        following = next((piece for piece in walk.after if piece.strip()), "")
        if call.fault is None:
            call.fault = fault_of_correction(following)
        return
    rule, fault = fault_after(walk.after, rest, call.name)
    # After `{"a": {"b": 1}, "c": 2` the extra bracket may be the inner one.
    if rule == STRAY_BRACKET and _CONTINUED.search(walk.text, call.start, call.end):
        fault = UnreadableError("after the object comes {}", rest)
    if rule:
        others = [other for other in call.rules if other != TEXT_AROUND]
        call.rules = (*others, rule)
    if call.fault is None:
        call.fault = fault or fault_of_values(walk.beside, call.value, walk.names)


def _is_continued(walk: _Walk, call: FoundCall, rest: str) -> bool:
    """Return whether the *rest* of the text may belong to *call*."""
    if PYTHON_CALL in call.rules and any(map(str.strip, walk.after)):
        return True
    if call.template is None:
        return False
    # A value may contain its own end mark.
    return call.template.value_end in rest or call.template.closing in rest


def _step(walk: _Walk) -> None:
    """Read the prose up to the next mark or object, then that mark or object."""
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
    """Return the beginning of a Python call at the position, if only marks that may
    open a Python call precede it.
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
    is_marked = walk.is_bare and _RESERVED.match(walk.mark) is not None
    name = ""
    fault = None
    if not is_marked:
        name, fault = fault_before(
            walk.prose, walk.mark, walk.before_mark, walk.names, walk.tool
        )
    name = walk.name or name
    holds = _held(walk) if is_marked else ""
    spaced_keys = walk.template is not None and walk.template.spaced_keys
    parser = LenientParser(
        walk.text, start, may_close=walk.may_close, spaced_keys=spaced_keys
    )
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
        call = FoundCall(
            name=name,
            value=arguments,
            rules=rules,
            start=start,
            end=end,
            fault=fault,
            is_marked=is_marked,
            holds=holds,
        )
        walk.add(call)


def _held(walk: _Walk) -> Holds:
    """Return the content of the object, "arguments" or "envelope", by the mark before
    it; return "" if the mark does not say.
    """
    if walk.template is not None or walk.mark.startswith(("<|start|>", "<|channel|>")):
        return "arguments"
    if any(re.fullmatch(pattern, walk.mark) for pattern in ENVELOPE_MARKS):
        return "envelope"
    return ""


def _read_python(walk: _Walk, match: re.Match[str]) -> None:
    parser = LenientParser(walk.text, match.end())
    value = python_call(parser)
    # In Python, JSON's `\/` is a backslash and a slash.
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
            walk.template = template
            return
        _add_template_call(walk, opening, template)
        return
    _add_prose(walk, start + 1)


def _add_template_call(walk: _Walk, opening: re.Match[str], template: Template) -> None:
    wrapper = _WRAPPER.fullmatch(walk.mark)
    texts, strings, end = read_parameters(
        walk.text, opening, template, Declared(walk.names, walk.required)
    )
    if wrapper and f"</{wrapper[1]}>" not in walk.text[end:]:
        raise UnreadableError("end inside a call", cut=True)
    name = opening["name"]
    if not name and _IDENTIFIER.fullmatch(walk.prose.strip()):
        # `read<arg_key>`: the model left out the mark that begins a call, so the tool's
        # name stands in the prose.
        name = walk.prose.strip()
    call = FoundCall(
        name=name,
        value=texts,
        rules=(CALL_TEMPLATE,),
        start=opening.start(),
        end=end,
        strings=strings,
        template=template,
        is_marked=True,
    )
    walk.add(call)


def _read_name(walk: _Walk, match: re.Match[str]) -> None:
    """Read a line or element that names the tool.

    If a parameter has the same key, only a line before the arguments names the tool.
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
    """Enter a message from the assistant to a tool, and skip any other message."""
    header = match[0]
    if not header.startswith("<|start|>"):
        # The beginning, with the role, was in the prompt.
        header = f"<|start|>assistant {walk.prose}{header}"
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
    for section in _SECTIONS:
        if re.fullmatch(section.pattern, match[0]):
            if section.role is Role.RESULT:
                walk.answer()
            _skip_past(walk, match, section.closer)
            return


def _skip_section(walk: _Walk, match: re.Match[str]) -> None:
    if match["section"].casefold() == "final answer":
        walk.forget()
    walk.answer()
    _skip_past(walk, match, _SECTION_END)


def _skip_past(walk: _Walk, opening: re.Match[str], closer: str) -> None:
    """Skip a section without calls, from its *opening* to its *closer*, or to the end
    of the text if the closer is missing.
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
