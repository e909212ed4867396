"""Find the tool, callable or skill of a runtime that a model means by an inexact name.

Law: a name is looked up among all known names, including hidden and withheld ones, so
that the name of an unavailable tool is never taken for that of an offered one. An
ambiguous name is refused, and only visible names are suggested.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import Any

from skillruntime.adapters.tools.tool_names import to_tool_name
from skillruntime.contract.closest_names import closest_names, nearest_names
from skillruntime.contract.contract import Contract
from skillruntime.contract.reading.arguments import parse_arguments
from skillruntime.contract.reading.tool_names import MeantName, meant_name
from skillruntime.errors import SkillInputError, SkillRuntimeError
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.presentation.activation import within_tokens
from skillruntime.runtime.runtime import SkillRuntime

_LISTED_TOKENS = 200  # the most tokens for the names in one error

OWN_TOOLS = (
    "load_skill",
    "read_skill_resource",
    "write_skill_input",
    "call_skill",
    "search_skills",
)
"""Names that a skill's tool must not have; each adapter checks its runtime with
`require_free_names`.
"""


def is_hidden(runtime: SkillRuntime, name: str) -> bool:
    """Return whether *name* belongs to a skill that its author hides from models."""
    # A skill is hidden together with all of its tools.
    metadata = runtime.catalog.get(name.partition("/")[0])
    return metadata is not None and not metadata.model_invocable


def meant_tool(
    runtime: SkillRuntime, sent: str, offered: Mapping[str, str]
) -> MeantName:
    """Return the tool that a model means; *offered* are the current tools, each with
    its callable.

    If the tool is not offered now, its call is refused under its own name.
    """
    if sent in offered or sent in OWN_TOOLS:
        return MeantName(sent)
    for tool, own_name in offered.items():
        # The callable's own tool name, where another one has its name for MCP clients:
        # by its letters it would be the other one.
        if to_tool_name(own_name) == sent:
            return MeantName(tool)
    shown = set(offered.values())
    known = _callables_in(runtime, sent)
    tools = {to_tool_name(name): name for name in known if name not in shown} | dict(
        offered
    )
    name = _meant(sent, tools | {own: own for own in OWN_TOOLS}, known)
    if name in OWN_TOOLS or (name is not None and not is_hidden(runtime, tools[name])):
        return MeantName(name)
    return MeantName(
        None,
        _nearest(
            sent, (tool for tool, own in tools.items() if not is_hidden(runtime, own))
        ),
    )


def meant_callable(runtime: SkillRuntime, sent: str) -> str | None:
    """Return the callable that a model means; some models write the tool's name,
    ``pdf__extract`` for ``pdf/extract``.
    """
    with suppress(SkillRuntimeError):
        runtime.contract(sent)
        if not is_hidden(runtime, sent):
            return sent
    known = _callables_in(runtime, sent)
    by_tool_name = {to_tool_name(name): name for name in known}
    name: str | None = sent
    if sent not in known:
        name = by_tool_name.get(sent)
        if name is None:
            name = _meant(sent, {name: name for name in known}, known)
    if name is None or is_hidden(runtime, name):
        return None
    return name


def skill_in(runtime: SkillRuntime, sent: str) -> tuple[str | None, str]:
    """Split *sent*, the name of a tool or callable that does not exist, into the skill
    that it names and the rest: ``PDF__convert`` is ``("pdf", "convert")``.
    """
    separator = "/" if "/" in sent else "__"
    skill, _, tool = sent.partition(separator)
    return meant_skill(runtime, skill), tool


def meant_skill(runtime: SkillRuntime, sent: str) -> str | None:
    """Return the skill that a model means by its name, or by the name of one of its
    tools.
    """
    skills = {*runtime.catalog, *runtime.function_skills()}
    name: str | None = sent
    if sent not in runtime.catalog:
        name = meant_name(sent, skills).name
    if name is None:
        name = (meant_callable(runtime, sent) or "").partition("/")[0]
    if name not in skills and name not in runtime.catalog:
        return None
    if is_hidden(runtime, name):
        return None
    return name


def put_right(
    runtime: SkillRuntime, sent: str, arguments: Any, offered: Mapping[str, str]
) -> tuple[str, Any]:
    """Return a call with the names of its tool and of the skill in its arguments
    corrected.

    *arguments* are a mapping or the model's text, and keep their form; an uncertain
    name stays unchanged.
    """
    name = meant_tool(runtime, sent, offered).name or sent
    find = _NAMED.get(name)
    if find is None:
        return name, arguments
    given = arguments
    if isinstance(arguments, str):
        with suppress(SkillInputError):
            given = parse_arguments(arguments).value
    if not isinstance(given, Mapping):
        return name, arguments
    written = given.get("name")
    if not isinstance(written, str):
        return name, arguments
    meant = find(runtime, written)
    if meant is None or meant == written:
        return name, arguments
    changed = {**given, "name": meant}
    if isinstance(arguments, str):
        return name, json.dumps(changed, ensure_ascii=False)
    return name, changed


_NAMED: Mapping[str, Callable[[SkillRuntime, str], str | None]] = {
    "load_skill": meant_skill,
    "read_skill_resource": meant_skill,
    "call_skill": meant_callable,
}


def listed_names(sent: str, names: Collection[str]) -> str:
    """Return *names* as an error lists them for a model: the nearest to *sent* first,
    within 200 tokens.
    """
    near = nearest_names(sent[:200], names, len(names))
    ordered = [*dict.fromkeys([*near, *sorted(names)])]
    shown = within_tokens({name: f"{name}, " for name in ordered}, _LISTED_TOKENS)
    if not shown:
        return "none"
    listed = ", ".join(shown)
    if len(shown) < len(ordered):
        listed += f" and {len(ordered) - len(shown):,} more"
    return listed


def _callables_in(runtime: SkillRuntime, sent: str) -> dict[str, Contract]:
    """Return the callables of the skills whose name occurs in *sent*.

    Other skills are not read: the contracts of ten thousand skills take minutes.
    """
    letters = _NO_LETTER.sub("", sent.lower())
    found: dict[str, Contract] = {}
    for skill in (*runtime.catalog, *runtime.function_skills()):
        if _NO_LETTER.sub("", skill.lower()) in letters:
            with suppress(SkillRuntimeError):
                found.update(runtime.open_skill(skill).contracts)
    return found


def _meant(
    sent: str, names: Mapping[str, str], known: Mapping[str, Contract]
) -> str | None:
    """Return the callable in *names* that the sent name means, directly or by its
    script.

    The script's directory and suffix may be missing: ``pdf/scripts/extract.py``,
    ``pdf/extract.py``.
    """
    meant = meant_name(sent, names)
    if meant.name is not None or meant.is_ambiguous:
        return meant.name
    # None if several callables have the file.
    by_file: dict[str, str | None] = {}
    for name, contract in known.items():
        path = str(contract.run.get("script", ""))
        if not path:
            continue
        skill, _, _ = name.partition("/")
        files = [path, posixpath.basename(path)]
        files += [posixpath.splitext(file)[0] for file in files]
        for file in files:
            key = f"{skill}/{file}"
            if by_file.get(key, name) == name:
                by_file[key] = name
            else:
                by_file[key] = None
    found = by_file.get(meant_name(sent, by_file).name or "")
    if not found:
        return None
    for name, own in names.items():
        if own in (found, to_tool_name(found)):
            return name
    return None


_NO_LETTER = lazy_pattern(r"[^a-z0-9]++")


def _nearest(sent: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(closest_names(sent, names, 3))
