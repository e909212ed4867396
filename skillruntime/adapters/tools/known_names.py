"""Which tool, callable or skill of a runtime a model means by a name that is not quite
right.

Law: a name is looked up among all that the host knows, hidden and withheld ones too, so
that one which is not offered is never taken for another that is. What cannot be decided
is refused, and only visible names are suggested.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from skillruntime.adapters.tools.tool_names import MeantName, meant_name, to_tool_name
from skillruntime.catalog.search.closest_names import closest_names
from skillruntime.contract.contract import Contract
from skillruntime.contract.reading.arguments import parse_arguments
from skillruntime.errors import SkillInputError, SkillRuntimeError
from skillruntime.runtime.runtime import SkillRuntime

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
    # Hiding is said of a skill, and holds for all of its tools.
    metadata = runtime.catalog.get(name.partition("/")[0])
    return metadata is not None and not metadata.model_invocable


def meant_tool(
    runtime: SkillRuntime, sent: str, offered: Mapping[str, str]
) -> MeantName:
    """Return which tool a model means; *offered* are the tools of the moment, each with
    its callable.

    The tool may be one that is not offered now: then a call of it is refused under its
    own name.
    """
    if sent in offered or sent in OWN_TOOLS:
        return MeantName(sent)
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
    """Return which callable a model means: some write the tool's name, ``pdf__extract``
    for ``pdf/extract``.
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
    """Return the skill that a model names in *sent*, the name of a tool or a callable
    that does not exist, and what follows it: ``PDF__convert`` is ``("pdf", "convert")``.
    """
    separator = "/" if "/" in sent else "__"
    skill, _, tool = sent.partition(separator)
    return meant_skill(runtime, skill), tool


def meant_skill(runtime: SkillRuntime, sent: str) -> str | None:
    """Return which skill a model means: by its name, or by that of a tool of it."""
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
    """Return a call with its tool's name put right, and with the skill's name in its
    arguments.

    *arguments* are a mapping or the model's text, and come back as such; what is not
    certain stays as it was written.
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


def _callables_in(runtime: SkillRuntime, sent: str) -> dict[str, Contract]:
    """Return all callables of the skills whose name *sent* may contain.

    At ten thousand skills reading every contract takes minutes.
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
    """Return which of *names*, each of a callable, is meant: by itself, or by the
    script of the callable.

    The script's directory and suffix may be missing: ``pdf/scripts/extract.py``,
    ``pdf/extract.py``.
    """
    meant = meant_name(sent, names)
    if meant.name is not None or meant.is_ambiguous:
        return meant.name
    # None where several callables have the file.
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


_NO_LETTER = re.compile(r"[^a-z0-9]++")


def _nearest(sent: str, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(closest_names(sent, names, 3))
