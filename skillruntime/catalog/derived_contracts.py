"""The scripts of a skill as tools, without a written contract: read on activation, never run."""

from __future__ import annotations

import logging
import posixpath
import re
from collections.abc import Callable, Iterable
from difflib import get_close_matches

from skillruntime.catalog.derivation_cache import derive_cached
from skillruntime.catalog.resources import SCRIPT_SUFFIXES, Resource
from skillruntime.derive import Derivation, check_documented_calls, find_documented_calls, with_examples
from skillruntime.derive.draft import tool_name
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError

__all__ = ["MAX_SCRIPTS", "derive_scripts", "documented_call_diagnostics"]

MAX_SCRIPTS = 64
"""Scripts of one skill that are read."""

MAX_SCRIPT_BYTES = 400_000
"""Bytes of a script that is read; a longer one is data, or generated."""

_log = logging.getLogger("skillruntime.catalog")
_ASIDE = re.compile(
    r"(^|/)(__init__|__main__|setup|conftest|test_[^/]*|[^/]*_test)\.\w+$|(^|/)(tests?|lib|node_modules)/"
)


Read = Callable[[str], bytes]


def derive_scripts(
    resources: Iterable[Resource], read: Read, *, instructions: str = "", skill: str = ""
) -> dict[str, Derivation]:
    """Return what can be read of the scripts in ``scripts/`` and next to SKILL.md, by the name of the tool.

    *resources* are the skill's files, *read* gives the bytes of one by its path or raises `ResourceNotFoundError`.
    Tests, packages' own files and modules that only others import are left out; so is what cannot be read at all.
    The command lines in *instructions*, the text of the skill named *skill*, are the tools' examples.
    """
    scripts = [each for each in resources if _is_script(each.path) and each.bytes <= MAX_SCRIPT_BYTES]
    derived = {each.path: _derived(each.path, read) for each in scripts[:MAX_SCRIPTS]}
    by_path = {path: derivation for path, derivation in derived.items() if derivation is not None}
    found: dict[str, Derivation] = {}
    for path, derivation in with_examples(by_path, instructions, skill=skill).items():
        name, number = tool_name(path), 2
        while name in found:
            name, number = f"{tool_name(path)}-{number}", number + 1
        found[name] = derivation
    return found


def documented_call_diagnostics(
    markdown: str, resources: Iterable[Resource], read: Read, *, path: str, skill: str
) -> list[Diagnostic]:
    """Return a warning for each command line in *markdown*, the SKILL.md at *path*, that its script would refuse."""
    scripts = [each.path for each in resources if _is_script(each.path) and each.bytes <= MAX_SCRIPT_BYTES]
    called = {each.script for each in find_documented_calls(markdown, scripts, skill=skill)}
    derived = {each: _derived(each, read) for each in scripts if each in called}
    known = {each: derivation for each, derivation in derived.items() if derivation is not None}
    found: list[Diagnostic] = []
    for each in check_documented_calls(markdown, known, skill=skill):
        flags = known[each.call.script].flags
        near = get_close_matches(each.word, flags, 1) if each.kind == "unknown-flag" else []
        hint = f"did you mean {near[0]}?" if near else None
        found.append(
            Diagnostic(f"call-{each.kind}", Severity.WARNING, path, each.message, each.line, each.column, hint)
        )
    return found


def _derived(path: str, read: Read) -> Derivation | None:
    try:
        source = read(path)
        return derive_cached(source, path=path, neighbours=_beside(read, path, source))
    except ResourceNotFoundError:
        return None
    except InvalidSkillError as error:  # it is not what was locked or installed
        _log.warning("%s", error)
        return None
    except Exception:  # a script that breaks the reader costs its own tool, never the skill
        _log.exception("%s could not be read", path)
        return None


def _is_script(path: str) -> bool:
    directory, _, file = path.rpartition("/")
    in_place = directory in ("", "scripts") or directory.startswith("scripts/")
    return in_place and file.endswith(SCRIPT_SUFFIXES) and _ASIDE.search(path) is None


def _beside(read: Read, path: str, source: bytes) -> Callable[[str], str | None]:
    """Return what gives the source of a module that the script at *path* imports, inside the skill and nowhere else.

    Python looks next to the script; one that changes ``sys.path`` may mean the directories above it too.
    """
    directories = [posixpath.dirname(path)]
    while b"sys.path" in source and directories[-1]:
        directories.append(posixpath.dirname(directories[-1]))

    def module(name: str) -> str | None:
        for directory in directories:
            try:
                data = read(posixpath.join(directory, f"{name.replace('.', '/')}.py"))
            except ResourceNotFoundError:
                continue
            return data.decode("utf-8-sig", "replace") if len(data) <= MAX_SCRIPT_BYTES else None
        return None

    return module
