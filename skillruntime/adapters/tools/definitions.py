"""Choose the callables that a request defines as tools, within one budget of tokens.

Law: the choice depends only on the callables, the loaded skills and the budget, and an
untrusted skill never displaces a trusted one unless it is loaded. Once the budget is
spent, no further contract is read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest

from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.contract.contract import Contract
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["Definitions", "by_name_note", "choose_definitions"]

_TRIES = 8
"""After this many definitions in a row that do not fit, the others are not read: a
single large definition does not hide those behind it, and ten thousand skills cost no
more than a few.
"""

# JSON has three to five bytes per token. A text with more than this many bytes for each
# remaining token is not counted.
_MOST_BYTES_A_TOKEN = 8

_MOST_LISTED = 20

_CONVERSATION_TOKENS = 600
"""Kept for the definitions of `load_skill`, `call_skill` and the like, which a request
has beside those of skills.
"""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The contracts of the callables that a request defines, and the names of the
    others, which ``call_skill`` calls.
    """

    contracts: dict[str, Contract]
    by_name: tuple[str, ...] = ()


def choose_definitions(
    runtime: SkillRuntime,
    names: Iterable[str],
    loaded: Collection[str] = (),
    *,
    text_of: Callable[[str, Contract], str] | None = None,
) -> Definitions:
    """Choose among the callables *names* those that a request defines: as many as
    ``runtime.definition_tokens`` allows beside `load_skill` and the like, and as many
    of untrusted skills as their share allows.

    *text_of* returns the definition of a callable as it is sent; by default the name,
    description and input schema are counted. The skills that the conversation has
    *loaded* come first, the latest before the others. Then follow functions and trusted
    skills, and then the untrusted ones: a tool of each in turn, so that a skill with
    many tools does not hide the next.
    """
    text_of = text_of or _text_of
    names = list(names)
    whole = _Allowance(_left_for_skills(runtime.definition_tokens))
    untrusted = _Allowance(runtime.untrusted_definition_tokens)
    chosen: dict[str, Contract] = {}
    broken: set[str] = set()
    for group, is_untrusted in _in_order(runtime, names, list(loaded)):
        allowances = [whole, untrusted] if is_untrusted else [whole]
        misses = 0
        for name in group:
            if misses == _TRIES:
                break
            try:
                contract = runtime.contract(name)
            except SkillRuntimeError:  # the skill may have changed since it was listed
                broken.add(name)
                continue
            text = text_of(name, contract)
            if not all(allowance.admits(text) for allowance in allowances):
                misses += 1
                continue
            misses = 0
            for allowance in allowances:
                allowance.take(text)
            chosen[name] = contract
    # In the order of the names, which does not depend on the loaded skills.
    contracts = {name: chosen[name] for name in names if name in chosen}
    by_name = [name for name in names if name not in chosen and name not in broken]
    return Definitions(contracts, tuple(by_name))


def by_name_note(
    definitions: Definitions, to_shown_name: Callable[[str], str] = str
) -> str:
    """Return the sentence of a prompt about the tools that are not defined; empty if
    all are. *to_shown_name* returns the name under which the instructions list a tool.
    """
    names = definitions.by_name
    if not names:
        return ""
    listed = ", ".join(map(to_shown_name, names[:_MOST_LISTED]))
    if len(names) > _MOST_LISTED:
        listed += f" and {len(names) - _MOST_LISTED:,} more"
    return (
        "These have no tool of their own here: load the skill, then call them by name "
        f"with call_skill: {listed}"
    )


def _in_order(
    runtime: SkillRuntime, names: list[str], loaded: list[str]
) -> Iterator[tuple[list[str], bool]]:
    """Yield *names* in the order in which they get tokens, in groups, each with whether
    its skills are untrusted.
    """
    by_skill: dict[str, list[str]] = {}
    for name in names:
        by_skill.setdefault(name.partition("/")[0], []).append(name)
    for skill in reversed(loaded):
        if skill in by_skill:
            yield by_skill.pop(skill), _is_untrusted(runtime, skill)
    for is_untrusted in (False, True):
        groups = []
        for skill, tools in by_skill.items():
            if _is_untrusted(runtime, skill) is is_untrusted:
                groups.append(tools)
        turns = zip_longest(*groups)
        ordered = [name for turn in turns for name in turn if name is not None]
        yield ordered, is_untrusted


def _is_untrusted(runtime: SkillRuntime, skill: str) -> bool:
    """Return whether *skill* and its contracts are untrusted; a skill of host functions
    is trusted.
    """
    metadata = runtime.catalog.get(skill)
    return metadata is not None and not metadata.trusted


class _Allowance:
    """The remaining tokens; None without a limit.

    A token has at least one byte, so tokens are not counted while the bytes fit:
    counting loads the tables of an encoding.
    """

    def __init__(self, tokens: int | None) -> None:
        self._left = tokens
        self._uncounted: list[str] = []

    def admits(self, text: str) -> bool:
        """Return whether enough tokens remain for *text*."""
        if self._left is None or _bytes_in(text) <= self._left:
            return True
        for earlier in self._uncounted:
            self._left += _bytes_in(earlier) - _tokens_in(earlier)
        self._uncounted = []
        if _bytes_in(text) > _MOST_BYTES_A_TOKEN * self._left:
            return False
        return _tokens_in(text) <= self._left

    def take(self, text: str) -> None:
        """Spend the tokens of *text*, which `admits` has admitted."""
        if self._left is None:
            return
        if _bytes_in(text) <= self._left:
            self._left -= _bytes_in(text)
            self._uncounted.append(text)
        else:
            self._left -= _tokens_in(text)


def _left_for_skills(tokens: int | None) -> int | None:
    """Return the part of *tokens* that the callables of skills may take."""
    if tokens is None:
        return None
    return max(0, tokens - _CONVERSATION_TOKENS)


def _text_of(name: str, contract: Contract) -> str:
    schema = json.dumps(to_tool_schema(contract), ensure_ascii=False)
    return f"{name} {contract.description} {schema}"


def _bytes_in(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


# A conversation asks again for each request, or for each run of an agent.
@lru_cache(maxsize=128)
def _tokens_in(text: str) -> int:
    from skillruntime.tokens.counter import count

    return count(text).tokens
