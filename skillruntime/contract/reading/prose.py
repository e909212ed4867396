"""Judge the prose beside an object by its form: a call stands between two sentences or
lines, never inside a sentence.

Of the words only the first of the sentence right before the object or behind it is
looked at. A line that names a parameter is not prose: its value would be lost.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable
from typing import Any

from skillruntime.contract.reading.json_text import UnreadableError
from skillruntime.contract.reading.tool_names import ARGUMENT_KEYS, folded, is_name_of

ALONE = "If this is the call, send its JSON object alone, without any other text"
# A sentence that begins so takes back the object beside it.
_REFUSING = re.compile(
    r"\W{0,9}(?:do\s+not|don['\u2019]?t|never|no|not|wait|actually|ignore|cannot|can['\u2019]t|instead|correction)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?]\s|[\u3002\uff01\uff1f\n]")
_ENDS = (":", "\uff1a", ".", "!", "?", "\u3002", "\uff01", "\uff1f")
# Labels of arguments: `Arguments:`, `Action Input:`; more words than these make a label
# of something else.
_LABELS = frozenset(map(folded, ARGUMENT_KEYS)) | {
    "functionarguments",
    "functioninput",
    "functionargs",
    "toolcall",
}
_LABELS |= {"functioncall", "call", "json", "here", "hereitis", "hereyouare"}
_LABEL_WORD = re.compile(r"[\w.:/'\u2019-]+")
_TAG = re.compile(r"<([\w.:-]{1,120})>\s*\Z")
_QUOTED_KEY = re.compile(r"""["'`]\s*[:=]\s*\Z""")
MAX_LINE = 400
MAX_TEXT = 50_000


def fault_before(
    prose: str, mark: str, before_mark: str, names: Collection[str], tool: str
) -> tuple[str, UnreadableError | None]:
    """Return the name of a tool that the *prose* before an object gives, and what is
    against the object, or ``None``.

    *mark* is what stands between that prose and *before_mark*, if anything: the mark of
    a template, or a fence.
    """
    if not prose.strip():
        if not mark:
            return "", None
        fault = _fault_of_sentence(before_mark)
        if fault is None and mark.startswith(("```", "~~~")):
            return _label(before_mark, names, tool, is_fenced=True) or ("", None)
        return "", fault
    last = prose.rstrip()
    fault = _fault_of_sentence(last)
    if fault is not None:
        return "", fault
    found = _label(prose, names, tool, is_fenced=False)
    if found is not None:
        return found
    tag = _TAG.search(last[-MAX_LINE:])
    if tag is not None and tool and is_name_of(tag[1], tool):
        return tag[1], None
    is_apart = "\n" in prose[len(last) :] or last.endswith(_ENDS)
    if not is_apart or last.endswith(">") or _QUOTED_KEY.search(last[-MAX_LINE:]):
        return "", _beside(last[-100:])
    return "", None


def _label(
    prose: str, names: Collection[str], tool: str, *, is_fenced: bool
) -> tuple[str, UnreadableError | None] | None:
    """Return what the label at the end of *prose* says: the tool's name, or a fault;
    ``None`` where there is none.

    Before a fence two or three words may be a sentence, ``Let me check:``; one word is
    not.
    """
    line = prose.rstrip()[-MAX_LINE:].rsplit("\n", 1)[-1].strip(" \t*_#>-")
    words = line.rstrip(":=\uff1a").strip(" *_`").split()
    if not all(map(_LABEL_WORD.fullmatch, words)):
        return None
    has_colon = line.endswith((":", "=", "\uff1a"))
    is_identifier = (
        len(words) == 1 and "_" in words[0]
    )  # `get_weather`, on a line of its own
    if not words or len(words) > 3 or not (has_colon or is_identifier):
        return None
    label = " ".join(words)
    if any(folded(label) == folded(name) for name in names):
        return "", _beside(line)
    if tool and is_name_of(label, tool):
        return label, None
    if folded(label) in _LABELS or (is_fenced and len(words) > 1):
        return "", None
    return "", UnreadableError("the object is labelled {}", line, action=ALONE)


def _fault_of_sentence(prose: str) -> UnreadableError | None:
    """Return what the first words of the last sentence of *prose* say against the
    object behind it.
    """
    last = prose.rstrip(" \t\r\n:.!?*_`\"'\uff1a\u3002\uff01\uff1f")[-MAX_LINE:]
    if _REFUSING.match(_SENTENCE_END.split(last)[-1]):
        return UnreadableError(
            "the text before the object says not to use it", action=ALONE
        )
    return None


def fault_after(
    pieces: Iterable[str], rest: str, name: str
) -> tuple[str | None, UnreadableError | None]:
    """Return the rule that what follows an object is repaired by, if one is needed, and
    what is against the object.

    *pieces* are the prose behind it, *rest* is all that follows; *name* is the tool's,
    whose tag may close here.
    """
    if _REFUSING.match(rest.lstrip(" \t\r\n`/#*")):
        return None, UnreadableError(
            "the text after the object may correct it: {}", rest[:100], action=ALONE
        )
    said = next((piece for piece in pieces if piece.strip()), "")
    text = said.strip().removeprefix(f"</{name}>")
    if not text:
        return None, None
    if text in (",", ";", ",;", "."):
        return ("trailing-comma" if "," in text else None), None
    if not text.strip("}] \t\r\n"):
        return "stray-bracket", None
    is_on_new_line = "\n" in said[: len(said) - len(said.lstrip())]
    sentence = _STOP.sub("", text, count=1)
    if is_on_new_line:
        sentence = sentence.lstrip("*_#>-(\u2022 \t")
    if not sentence or (sentence[0].isalpha() and not sentence[0].islower()):
        return None, None
    return None, _beside(text[:100])


_STOP = re.compile(r"\A[.;!](?=\s|\Z)\s*")
# `days: 5`, `**Max items** -> 5`, `--days 5`, `<days>`: the names are compared with
# those of the schema.
_VALUE = re.compile(
    r"(?<![\w-])(?P<name>[^\W\d][\w-]{0,80}(?:[ .][\w-]{1,80}){0,3})[\"'`*_)]{0,4}\s{0,3}"
    r"(?:[:=\uff1a]|[-=]>|\u2192)(?=(?P<said>[^\n]{0,200}))"
    r"|--(?P<option>[\w-]{1,80})[= ](?=(?P<value>[^\n]{0,200}))|<(?P<tag>[\w.:-]{1,80})>"
)


def fault_of_values(
    prose: Iterable[str], value: Any, names: Collection[str]
) -> UnreadableError | None:
    """Return that a part of *prose* gives a value to a parameter, one of *names*, which
    *value* does not have.
    """
    declared = {folded(name) for name in names}
    held = (
        {folded(key): member for key, member in value.items()}
        if isinstance(value, dict)
        else {}
    )
    text = "\n".join(prose)
    if len(text) > MAX_TEXT:
        return UnreadableError("beside the object there is a long text", action=ALONE)
    for match in _VALUE.finditer(text):
        words = _SPACE.split(match["name"] or match["option"] or match["tag"])
        said = (match["said"] or match["value"] or "").strip(" \t\r\"'`*.,;")
        for first in range(len(words)):
            name = folded("".join(words[first:]))
            if (
                name in declared
                and (said or match["tag"])
                and said != _written(held.get(name))
            ):
                return _beside(match[0])
    return None


_SPACE = re.compile(r"[ .]")


def _written(member: Any) -> str | None:
    return (
        member
        if isinstance(member, str)
        else json.dumps(member, ensure_ascii=False, default=str)
    )


def _beside(text: str) -> UnreadableError:
    return UnreadableError("beside the object there is {}", text, action=ALONE)
