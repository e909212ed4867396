"""The scripts of a skill as tools, without a written contract: read on activation, never run."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches

from skillruntime.catalog.derivation_cache import derive_known
from skillruntime.catalog.resources import SCRIPT_SUFFIXES, Resource
from skillruntime.catalog.visible_contract import visible_document
from skillruntime.contract.contract import Contract
from skillruntime.derive import Derivation, check_documented_calls, find_documented_calls, with_examples
from skillruntime.derive.draft import tool_name
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError

__all__ = ["MAX_SCRIPTS", "derive_scripts", "derived_contracts", "documented_call_diagnostics"]

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
    return {name: found for name, found, _ in _tools(resources, read, instructions, skill)}


def derived_contracts(
    resources: Iterable[Resource], read: Read, *, instructions: str, skill: str, one_line: bool
) -> dict[str, Contract]:
    """Return the contracts of what `derive_scripts` returns, without hidden characters, by ``skill/tool``.

    With *one_line* the texts in them are single lines. A script whose interface makes no usable schema is left out.
    """
    found: dict[str, Contract] = {}
    for tool, derivation, is_usable in _tools(resources, read, instructions, skill):
        name = f"{skill}/{tool}"
        try:
            document = visible_document(derivation.document, one_line=one_line)
            # Examples and the words of descriptions are all that was changed since: neither makes it unusable.
            make = Contract.from_known_dict if is_usable else Contract.from_dict
            found[name] = make(document, name=name)
        except InvalidSkillError:
            continue
        except Exception:
            _log.exception("no contract could be derived for the script %s", name)
    return found


def _tools(
    resources: Iterable[Resource], read: Read, instructions: str, skill: str
) -> Iterator[tuple[str, Derivation, bool]]:
    """Yield the name of each tool, what was read of its script, and whether that surely makes a usable contract."""
    scripts = [each for each in resources if _is_script(each.path) and each.bytes <= MAX_SCRIPT_BYTES]
    derived = {each.path: _derived(each.path, read) for each in scripts[:MAX_SCRIPTS]}
    by_path = {path: derivation for path, (derivation, _) in derived.items() if derivation is not None}
    names: set[str] = set()
    for path, derivation in with_examples(by_path, instructions, skill=skill).items():
        name, number = tool_name(path), 2
        while name in names:
            name, number = f"{tool_name(path)}-{number}", number + 1
        names.add(name)
        yield name, derivation, derived[path][1]


def documented_call_diagnostics(
    markdown: str, resources: Iterable[Resource], read: Read, *, path: str, skill: str
) -> list[Diagnostic]:
    """Return a warning for each command line in *markdown*, the SKILL.md at *path*, that its script would refuse."""
    # Only scripts that the text calls are read: `validate` runs over whole collections.
    scripts = [each.path for each in resources if _is_script(each.path) and each.bytes <= MAX_SCRIPT_BYTES]
    called = {each.script for each in find_documented_calls(markdown, scripts, skill=skill)}
    derived = {each: _derived(each, read)[0] for each in scripts if each in called}
    known = {each: derivation for each, derivation in derived.items() if derivation is not None}
    found: list[Diagnostic] = []
    for each in check_documented_calls(markdown, known, skill=skill):
        flags = known[each.call.script].flags
        # A misspelt flag is the commonest cause, and the list of all flags is too long for a message.
        near = get_close_matches(each.word, flags, 1) if each.kind == "unknown-flag" else []
        hint = f"did you mean {near[0]}?" if near else None
        found.append(
            Diagnostic(f"call-{each.kind}", Severity.WARNING, path, each.message, each.line, each.column, hint)
        )
    return found


def _derived(path: str, read: Read) -> tuple[Derivation | None, bool]:
    try:
        return derive_known(read(path), path=path)
    except ResourceNotFoundError:
        return None, False
    except InvalidSkillError as error:  # it is not what was locked or installed
        _log.warning("%s", error)
        return None, False
    except Exception:  # a script that breaks the reader costs its own tool, never the skill
        _log.exception("%s could not be read", path)
        return None, False


def _is_script(path: str) -> bool:
    directory, _, file = path.rpartition("/")
    in_place = directory in ("", "scripts") or directory.startswith("scripts/")
    return in_place and file.endswith(SCRIPT_SUFFIXES) and _ASIDE.search(path) is None
