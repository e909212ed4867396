"""Judge the prose beside an object by its form: a call stands between two sentences or
lines, never inside a sentence.

Only the first words of the sentence right before or after the object count. A line that
names a parameter is not prose: its value would be lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from skillruntime.contract.reading.json_text import UnreadableError
from skillruntime.contract.reading.tool_names import ARGUMENT_KEYS, folded, is_name_of
from skillruntime.contract.repair_rules import STRAY_BRACKET, TRAILING_COMMA
from skillruntime.lazy_patterns import lazy_pattern

ALONE = "If this is the call, send its JSON object alone, without any other text"
# The beginnings of an English sentence that retracts the object beside it; other words
# of prose are not interpreted. None of the 184 recorded replies of a small model begins
# like this. The rule prevents a call that the model itself retracted.
_REFUSING = lazy_pattern(r"\W{0,9}(?:do\s+not|don['\u2019]?t|never)\b", re.IGNORECASE)
_SENTENCE_END = lazy_pattern(r"[.!?]\s|[\u3002\uff01\uff1f\n]")
_ENDS = (":", "\uff1a", ".", "!", "?", "\u3002", "\uff01", "\uff1f")
# Labels of arguments: `Arguments:`, `Action Input:`; a longer label refers to something
# else.
_LABELS = frozenset(map(folded, ARGUMENT_KEYS)) | {
    "functionarguments",
    "functioninput",
    "functionargs",
    "toolcall",
    "functioncall",
    "call",
    "json",
    "here",
    "hereitis",
    "hereyouare",
}
_LABEL_WORD = lazy_pattern(r"[\w.:/'\u2019-]+")
_TAG = lazy_pattern(r"<([\w.:-]{1,120})>\s*\Z")
_QUOTED_KEY = lazy_pattern(r"""["'`]\s*[:=]\s*\Z""")
MAX_LINE = 400
MAX_TEXT = 50_000


def fault_before(
    prose: str, mark: str, before_mark: str, names: Collection[str], tool: str
) -> tuple[str, UnreadableError | None]:
    """Return the tool's name in the *prose* before an object, or an empty string, and
    the object's fault according to the prose, or ``None``.

    *mark* is the template mark or fence between *before_mark* and *prose*, if there is
    one.
    """
    if prose.strip():
        return _fault_of_prose(prose, names, tool)
    if not mark:
        return "", None
    fault = _fault_of_sentence(before_mark)
    if fault is None and mark.startswith(("```", "~~~")):
        return _label(before_mark, names, tool, is_fenced=True) or ("", None)
    return "", fault


def _fault_of_prose(
    prose: str, names: Collection[str], tool: str
) -> tuple[str, UnreadableError | None]:
    text = prose.rstrip()
    fault = _fault_of_sentence(text)
    if fault is not None:
        return "", fault
    label = _label(prose, names, tool, is_fenced=False)
    if label is not None:
        return label
    line = text[-MAX_LINE:]
    tag = _TAG.search(line)
    if tag is not None and tool and is_name_of(tag[1], tool):
        return tag[1], None
    is_apart = "\n" in prose[len(text) :] or text.endswith(_ENDS)
    if not is_apart or text.endswith(">") or _QUOTED_KEY.search(line):
        return "", _beside(text[-100:])
    return "", None


def _label(
    prose: str, names: Collection[str], tool: str, *, is_fenced: bool
) -> tuple[str, UnreadableError | None] | None:
    """Return the tool's name and the fault by the label at the end of *prose*; return
    ``None`` if there is no label.

    Before a fence, two or three words may be a sentence, such as ``Let me check:``, but
    one word is a label.
    """
    line = prose.rstrip()[-MAX_LINE:].rsplit("\n", 1)[-1].strip(" \t*_#>-")
    words = line.rstrip(":=\uff1a").strip(" *_`").split()
    if not words or len(words) > 3:
        return None
    if not all(map(_LABEL_WORD.fullmatch, words)):
        return None
    has_colon = line.endswith((":", "=", "\uff1a"))
    # `get_weather`, on a line of its own.
    is_identifier = len(words) == 1 and "_" in words[0]
    if not has_colon and not is_identifier:
        return None
    label = " ".join(words)
    if folded(label) in map(folded, names):
        return "", _beside(line)
    if tool and is_name_of(label, tool):
        return label, None
    if folded(label) in _LABELS or (is_fenced and len(words) > 1):
        return "", None
    return "", UnreadableError("the object is labelled {}", line, action=ALONE)


def _fault_of_sentence(prose: str) -> UnreadableError | None:
    """Return the fault if the last sentence of *prose* retracts the following object."""
    text = prose.rstrip(" \t\r\n:.!?*_`\"'\uff1a\u3002\uff01\uff1f")[-MAX_LINE:]
    sentence = _SENTENCE_END.split(text)[-1]
    if not _REFUSING.match(sentence):
        return None
    return UnreadableError(
        "the text before the object says not to use it", action=ALONE
    )


def fault_after(
    pieces: Iterable[str], rest: str, name: str
) -> tuple[str | None, UnreadableError | None]:
    """Return the rule that repairs the text after an object, and the object's fault;
    each may be ``None``.

    *pieces* are the prose after the object, *rest* is the whole text after it; *name*
    is the tool's name, whose closing tag may be in the prose.
    """
    correction = fault_of_correction(rest)
    if correction is not None:
        return None, correction
    prose = next((piece for piece in pieces if piece.strip()), "")
    text = prose.strip().removeprefix(f"</{name}>")
    if text in ("", ";", "."):
        return None, None
    if text in (",", ",;"):
        return TRAILING_COMMA, None
    if not text.strip("}] \t\r\n"):
        return STRAY_BRACKET, None
    sentence = _STOP.sub("", text, count=1)
    space_before = prose[: len(prose) - len(prose.lstrip())]
    if "\n" in space_before:
        sentence = sentence.lstrip("*_#>-(\u2022 \t")
    if not sentence:
        return None, None
    # A sentence begins with a capital letter, or a letter that has no case.
    if sentence[0].isalpha() and not sentence[0].islower():
        return None, None
    return None, _beside(text[:100])


def fault_of_correction(rest: str) -> UnreadableError | None:
    """Return the fault if *rest*, the text after an object, begins by retracting it."""
    if not _REFUSING.match(rest.lstrip(" \t\r\n`/#*")):
        return None
    return UnreadableError(
        "the text after the object may correct it: {}", rest[:100], action=ALONE
    )


_STOP = lazy_pattern(r"\A[.;!](?=\s|\Z)\s*")
# `days: 5`, `**Max items** -> 5`, `--days 5`, `<days>`: the names are compared with
# those of the schema.
_VALUE = lazy_pattern(
    r"(?<![\w-])(?P<name>[^\W\d][\w-]{0,80}(?:[ .][\w-]{1,80}){0,3})"
    r"[\"'`*_)]{0,4}\s{0,3}(?:[:=\uff1a]|[-=]>|\u2192)"
    r"(?=(?P<value_of_name>[^\n]{0,200}))"
    r"|--(?P<option>[\w-]{1,80})[= ](?=(?P<value_of_option>[^\n]{0,200}))"
    r"|<(?P<tag>[\w.:-]{1,80})>"
)


def fault_of_values(
    prose: Iterable[str], value: Any, names: Collection[str]
) -> UnreadableError | None:
    """Return the fault if *prose* gives one of the parameters *names* a different value
    than *value* does.
    """
    declared = {folded(name) for name in names}
    members: dict[str, Any] = {}
    if isinstance(value, dict):
        members = {folded(key): member for key, member in value.items()}
    text = "\n".join(prose)
    if len(text) > MAX_TEXT:
        return UnreadableError("beside the object there is a long text", action=ALONE)
    for match in _VALUE.finditer(text):
        written = (match["value_of_name"] or match["value_of_option"] or "").strip(
            " \t\r\"'`*.,;"
        )
        if not written and not match["tag"]:
            continue
        words = _SPACE.split(match["name"] or match["option"] or match["tag"])
        # The name may be the last words of a longer sentence.
        for first in range(len(words)):
            name = folded("".join(words[first:]))
            if name in declared and written != _to_text(members.get(name)):
                return _beside(match[0])
    return None


_SPACE = lazy_pattern(r"[ .]")


def _to_text(member: Any) -> str:
    if isinstance(member, str):
        return member
    return json.dumps(member, ensure_ascii=False, default=str)


def _beside(text: str) -> UnreadableError:
    return UnreadableError("beside the object there is {}", text, action=ALONE)
