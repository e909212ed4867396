"""Judge one call by the schema of its tool: pass, repair or refuse it.

The law: a call that fits passes unchanged, and repaired arguments fit and mean the
same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from skillruntime.adapters.mcp_proxy.json_text import encode, to_bytes
from skillruntime.adapters.mcp_proxy.options import Options
from skillruntime.adapters.mcp_proxy.tools import Tool, Tools

if TYPE_CHECKING:
    from skillruntime.contract import Repair
    from skillruntime.errors import SkillError
    from skillruntime.runtime.error_responses import Refusals as Counted

__all__ = [
    "MARK",
    "Note",
    "Refusals",
    "Verdict",
    "cut",
    "digest_of",
    "judge",
    "judge_call",
    "refusal_text",
    "refused",
    "split_state",
]

MOST_TOKENS = 80
LONGEST_TEXT = 10_000_000
"""The contract does not parse a longer text; longer arguments are judged and repaired
as parsed values.
"""
LONGEST_VALUE = 200
MARK = "skillruntime1."


@dataclass(frozen=True, slots=True)
class Note:
    """One repair, as ``_meta`` and the log report it. The values are shortened JSON,
    and empty if they are secret.
    """

    path: str
    rule: str
    before: str = ""
    after: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision on a call: the ``arguments`` to forward instead of its own, or the
    ``faults`` to answer with.
    """

    arguments: bytes | None = None
    notes: tuple[Note, ...] = ()
    faults: tuple[SkillError, ...] = ()
    unchecked: str | None = None

    @property
    def outcome(self) -> str:
        """Return one word for the decision."""
        if self.faults:
            return "refused"
        if self.arguments is not None or self.notes:
            return "repaired"
        if self.unchecked:
            return "unchecked"
        return "passed"

    def renamed(self, name: str, meant: str) -> Verdict:
        """Return the verdict on a call that named another tool than it meant."""
        return replace(
            self,
            notes=(Note("", "tool-name", encode(name), encode(meant)), *self.notes),
        )


def judge_call(
    tools: Tools, options: Options, name: str, arguments: bytes
) -> tuple[Tool | None, Verdict]:
    """Return the tool that a call by *name* means, or None if it is unknown, and the
    verdict on the call.
    """
    tool = tools.find(name)
    if tool is None and options.of(name).policy not in ("strict", "off"):
        meant = tools.meant_by(name)
        if meant.is_ambiguous:
            return None, refused(
                f"{_short(name)} can be several tools",
                f"Call {' or '.join(meant.nearest)}",
            )
        if meant.name is not None:
            tool = tools.find(meant.name)
    # A tool may exist although lists hide it: the server decides.
    if tool is None:
        return None, Verdict(unchecked="the tool is not listed")
    verdict = judge(tool, arguments, options.of(tool.name).policy)
    if tool.name != name:
        verdict = verdict.renamed(name, tool.name)
    return tool, verdict


def refused(message: str, action: str | None = None) -> Verdict:
    """Return the verdict on a call whose fault is not in a single argument."""
    from skillruntime.errors import ErrorCode, SkillError  # not before it is needed

    return Verdict(
        faults=(SkillError(ErrorCode.INVALID_INPUT, message, True, None, action),)
    )


def judge(tool: Tool, text: bytes, policy: str = "safe") -> Verdict:
    """Return the verdict on a call of *tool* with the JSON *text* as its ``arguments``;
    *text* is empty if the call has none.

    >>> from skillruntime.adapters.mcp_proxy.tools import compile_tool
    >>> n = {"type": "integer", "maximum": 10}
    >>> schema = {"type": "object", "properties": {"n": n}}
    >>> tool = compile_tool({"name": "t", "inputSchema": schema})
    >>> judge(tool, b'{"n": 5}').outcome, judge(tool, b'{"n": "5"}').arguments
    ('passed', b'{"n":5}')
    >>> judge(tool, b'{"n": 11}').faults[0].message
    '/n: 11 is more than the maximum 10'
    """
    if policy == "off":
        return Verdict(unchecked=tool.reason or "policy is off")
    if tool.contract is None:
        return Verdict(unchecked=tool.reason or "no schema")
    from skillruntime.contract.reading.parameters import may_have_swallowed
    from skillruntime.errors import SkillInputError, UnsupportedVersionError

    # Most calls fit: they are parsed and validated, but not copied.
    literals: dict[float, str] = {}
    try:
        value, unreadable = _read(text, literals), None
    except (ValueError, RecursionError) as error:
        value, unreadable = None, error
    if unreadable is None and isinstance(value, dict):
        plain = policy if may_have_swallowed(value) else "strict"
        try:
            accepted = tool.contract.accept(value, fill_defaults=False, policy=plain)
            if accepted.arguments is value:
                return Verdict()
        except SkillInputError:
            pass
    # RFC 8259, 4: the meaning of a repeated key is not defined.
    if isinstance(unreadable, _RepeatedKeyError):
        return refused(str(unreadable), "Send each argument once")
    if unreadable is not None:
        return refused(f"The arguments are not readable JSON: {unreadable}")
    try:
        # Read the version from the text, not from the values: only the text shows that
        # 1.10 was written.
        raw: Any = text.decode() if len(text) <= LONGEST_TEXT else value
        accepted = tool.contract.accept(raw, fill_defaults=False, policy=policy)
    except UnicodeDecodeError:
        return refused("The arguments are not UTF-8")
    except (SkillInputError, UnsupportedVersionError) as error:
        return Verdict(faults=tuple(error.to_errors()))
    new = to_bytes(accepted.arguments, literals)
    notes = tuple(_noted(each) for each in accepted.repairs)
    return Verdict(arguments=new, notes=notes or (Note("", "empty-text"),))


def refusal_text(faults: Iterable[SkillError]) -> str:
    """Return the text for the model about a refused call: what is wrong, where, and the
    next step, in at most 80 tokens.

    >>> refusal_text(refused("/n: 11 is more than the maximum 10", "Send 10").faults)
    'Not run: /n: 11 is more than the maximum 10. Send 10.'
    """
    from skillruntime.catalog.visibility import visible_line  # not before it is needed

    # The quoted values come from the caller and the schema from the server: neither may
    # contain the marks of a chat template.
    return visible_line(_sentences(list(faults)))


def _sentences(faults: list[SkillError]) -> str:
    # The first fault always gets a sentence; eight tokens are reserved for the number
    # of further faults.
    text = "Not run:"
    left = MOST_TOKENS - 4
    for number, fault in enumerate(faults):
        parts = []
        for part in (fault.message, fault.suggested_action):
            if part:
                parts.append(f"{part.rstrip('.')}.")
        sentence = " " + " ".join(parts)
        is_last = number == len(faults) - 1
        kept = 0 if is_last else 8
        if _tokens(sentence) > left - kept:
            if number == 0:
                return text + cut(sentence, left)
            return f"{text} And {len(faults) - number} more."
        text += sentence
        left -= _tokens(sentence)
    return text


class Refusals:
    """The refused calls of one conversation: a repeated call is answered in other
    words.
    """

    def __init__(self) -> None:
        self._counted: Counted | None = None

    def reported(
        self, name: str, arguments: bytes, faults: tuple[SkillError, ...]
    ) -> tuple[SkillError, ...]:
        """Count the refusal of a call, and return *faults* as the model should read
        them this time.
        """
        from skillruntime.runtime.error_responses import Refusals as Counted
        from skillruntime.runtime.error_responses import repeated

        if self._counted is None:
            self._counted = Counted()
        times = self._counted.count(digest_of(name, arguments))
        return repeated(faults[0], times), *faults[1:]


def digest_of(name: str, arguments: bytes) -> str:
    """Return the digest that identifies a forwarded call when it is retried."""
    return hashlib.sha256(json.dumps(name).encode() + b"\0" + arguments).hexdigest()[
        :32
    ]


def split_state(state: str) -> tuple[str | None, str]:
    """Return the digest of the repaired call that *state* carries, and the server's own
    state.

    >>> split_state("skillruntime1.0123456789abcdef0123456789abcdef.opaque")
    ('0123456789abcdef0123456789abcdef', 'opaque')
    >>> split_state("opaque")
    (None, 'opaque')
    """
    match = _STATE.match(state)
    if match is None:
        return None, state
    return match[1], state[match.end() :]


_STATE = re.compile(re.escape(MARK) + r"([0-9a-f]{32})\.")


class _RepeatedKeyError(ValueError):
    pass


def _read(text: bytes, literals: dict[float, str]) -> Any:
    """Parse *text*, and note in *literals* each number that JSON would write
    differently.
    """
    if not text:
        return {}
    ambiguous: set[float] = set()

    def number(literal: str) -> float:
        value = float(literal)
        if literals.setdefault(value, literal) != literal:
            ambiguous.add(value)
        return value

    # `strict=False` takes control characters in strings, which models write and many
    # servers read.
    value = json.loads(
        text,
        strict=False,
        parse_float=number,
        object_pairs_hook=_unique,
        parse_constant=_constant,
    )
    for number_value in (*ambiguous, 0.0):  # 0.0 and -0.0 are one key
        literals.pop(number_value, None)
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise _RepeatedKeyError(f"The key {_short(key)} comes twice")
            seen.add(key)
    return unique


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _noted(repair: Repair) -> Note:
    if repair.secret:
        return Note(repair.path, repair.rule)
    return Note(repair.path, repair.rule, _short(repair.before), _short(repair.after))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) > LONGEST_VALUE:
        return text[: LONGEST_VALUE - 1] + "…"
    return text


# How tokenizers split English and JSON, counted on the high side: four letters, three
# digits or one mark a token.
_PIECES = re.compile(r"[A-Za-z]{1,4}|\d{1,3}|[^\sA-Za-z\d]")


def _tokens(text: str) -> int:
    return sum(1 if piece[0].isascii() else 2 for piece in _PIECES.findall(text))


def cut(text: str, most: int = MOST_TOKENS) -> str:
    """Return *text* truncated to at most *most* tokens."""
    end = 0
    for match in _PIECES.finditer(text):
        most -= 1 if match[0].isascii() else 2
        if most < 2:
            return text[:end].rstrip() + "…"
        end = match.end()
    return text
