"""The scripts of a skill as tools, without a written contract: read on activation,
never run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from skillruntime.catalog.contracts.derivation_cache import derive_known
from skillruntime.catalog.contracts.visible_contract import visible_document
from skillruntime.catalog.resources import SCRIPT_SUFFIXES, Resource
from skillruntime.contract.contract import Contract
from skillruntime.derive.command_line import tool_name
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError

if TYPE_CHECKING:
    from skillruntime.derive import Derivation

__all__ = ["MAX_SCRIPTS", "derive_scripts", "derived_contracts", "sure_tools"]

MAX_SCRIPTS = 64
"""Scripts of one skill that are read."""

MAX_SCRIPT_BYTES = 400_000
"""Bytes of a script that is read; a longer one is data, or generated."""

_log = logging.getLogger("skillruntime.catalog")
_ASIDE = re.compile(
    r"(^|/)(__init__|__main__|setup|conftest|test_[^/]*|[^/]*_test)\.\w+$"
    r"|(^|/)(tests?|lib|node_modules)/"
)


Read = Callable[[str], bytes]
_Found = TypeVar("_Found", covariant=True)


class _Derive(Protocol[_Found]):
    def __call__(self, source: bytes, *, path: str) -> _Found | None: ...


def derive_scripts(resources: Iterable[Resource], read: Read) -> dict[str, Derivation]:
    """Return the interfaces of the scripts in ``scripts/`` and next to SKILL.md, by the
    name of the tool.

    *resources* are the skill's files, *read* gives the bytes of one by its path or
    raises `ResourceNotFoundError`. Tests, packages' own files and modules that only
    others import are left out, and so are scripts whose interface cannot be read.
    """
    from skillruntime.derive import derive

    return dict(_tools(resources, read, derive))


def derived_contracts(
    resources: Iterable[Resource], read: Read, *, skill: str, one_line: bool
) -> dict[str, Contract]:
    """Return the contracts of the scripts that `derive_scripts` returns, without hidden
    characters, by ``skill/tool``.

    With *one_line* the texts in them are single lines. A script whose interface makes
    no usable schema is left out.
    """
    contracts: dict[str, Contract] = {}
    for tool, (derived, is_usable) in _tools(resources, read, _known):
        name = f"{skill}/{tool}"
        try:
            document = visible_document(derived, one_line=one_line)
            if is_usable:
                # Only the words of descriptions were changed since it was compiled, and
                # they do not make it unusable.
                contract = Contract.from_known_dict(document, name=name)
            else:
                contract = Contract.from_dict(document, name=name)
            contracts[name] = contract
        except InvalidSkillError:
            continue
        except Exception:
            _log.exception("no contract could be derived for the script %s", name)
    return contracts


def _known(source: bytes, *, path: str) -> tuple[Mapping[str, Any], bool] | None:
    document, is_usable = derive_known(source, path=path)
    if document is None:
        return None
    return document, is_usable


def _tools(
    resources: Iterable[Resource], read: Read, derive: _Derive[_Found]
) -> Iterator[tuple[str, _Found]]:
    """Yield the name of each tool, and what *derive* returns for its script."""
    names: set[str] = set()
    scripts = [resource for resource in resources if _may_be_tool(resource)]
    for script in scripts[:MAX_SCRIPTS]:
        derived = _derived(script.path, read, derive)
        if derived is None:
            continue
        name = tool_name(script.path)
        number = 2
        while name in names:
            name = f"{tool_name(script.path)}-{number}"
            number += 1
        names.add(name)
        yield name, derived


def _derived(path: str, read: Read, derive: _Derive[_Found]) -> _Found | None:
    try:
        return derive(read(path), path=path)
    except ResourceNotFoundError:
        return None
    except InvalidSkillError as error:  # it is not what was locked or installed
        _log.warning("%s", error)
        return None
    except Exception:
        # A script that breaks the reader costs its own tool, never the skill.
        _log.exception("%s could not be read", path)
        return None


def sure_tools(resources: Iterable[Resource], read: Read) -> Iterator[bool]:
    """Yield for each script whether two lines of it show that it is a tool: a Python
    program with arguments.

    Deriving its contract takes a hundred times as long. A module that only defines
    things for others is not a program.
    """
    scripts = [resource for resource in resources if _may_be_tool(resource)]
    for script in scripts[:MAX_SCRIPTS]:
        yield _is_surely_tool(script.path, read)


def _is_surely_tool(path: str, read: Read) -> bool:
    if not path.endswith(".py"):
        return False
    try:
        source = _TEXT.sub(b"", read(path))
    except ResourceNotFoundError:
        return False
    has_arguments = _READS_WORDS.search(source) is not None
    return has_arguments and _IS_PROGRAM.search(source) is not None


# A text in a module may say how others call it.
_TEXT = re.compile(rb'""".*?"""' rb"|'''.*?'''", re.DOTALL)
_IS_PROGRAM = re.compile(
    rb"^(?:if __name__ ?==|main\(|sys\.exit\(|raise SystemExit\("
    rb"|\w+ = \w+\.parse_args\()",
    re.MULTILINE,
)
_READS_WORDS = re.compile(
    rb"^ *+(?:import|from) (?:argparse|click|typer)\b|^[^#\n]*?\bsys\.argv\b",
    re.MULTILINE,
)


def _may_be_tool(resource: Resource) -> bool:
    path = resource.path
    directory, _, file = path.rpartition("/")
    if directory not in ("", "scripts") and not directory.startswith("scripts/"):
        return False
    if not file.endswith(SCRIPT_SUFFIXES) or resource.bytes > MAX_SCRIPT_BYTES:
        return False
    return _ASIDE.search(path) is None
