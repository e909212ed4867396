"""Reads the contracts next to a SKILL.md: on demand and bounded; one invalid file does
not affect the others.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from skillruntime.catalog.contracts.visible_contract import hidden_in, visible_document
from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, read_yaml
from skillruntime.catalog.resources import read_bytes
from skillruntime.catalog.visibility import listed_kinds
from skillruntime.contract.contract import Contract
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError

__all__ = ["ContractFiles", "read_contract_files"]

MAX_CONTRACT_BYTES = 1024 * 1024
MAX_TOOLS = 128  # of one untrusted skill, as many as OpenAI takes in a request

_log = logging.getLogger("skillruntime.catalog")
_SUFFIXES = (".json", ".yaml", ".yml")
# Providers accept letters, digits, `_` and `-` in the names of tools, at most 64
# characters.
_TOOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(slots=True)
class ContractFiles:
    """The contracts of one skill by callable name, the errors of invalid ones, and the
    descriptor's version.
    """

    read: Callable[[str, int], bytes]
    contracts: dict[str, Contract] = field(default_factory=dict)
    broken: dict[str, InvalidSkillError] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    descriptor_version: str | None = None
    one_line: bool = False


def read_contract_files(
    directory: str,
    name: str,
    *,
    trusted: bool = True,
    read: Callable[[str, int], bytes] | None = None,
) -> ContractFiles:
    """Return the contracts in *directory*, which belongs to the skill *name*.

    Texts for a reader lose hidden characters; those of a skill that is not *trusted*
    become single lines.
    """
    found = ContractFiles(read or partial(read_bytes, directory), one_line=not trusted)
    try:
        present = sorted(os.listdir(directory))
    except OSError:
        return found
    # JSON has precedence over YAML.
    own = [
        f"contract{suffix}" for suffix in _SUFFIXES if f"contract{suffix}" in present
    ]
    for path in own[:1]:
        _read(found, directory, path, name)
    for path in own[1:]:
        _report(
            found,
            directory,
            path,
            "contract-twice",
            f"ignored, because {own[0]} is used",
            Severity.WARNING,
        )
    if "contracts" in present:
        _read_tools(found, directory, name)
    if "descriptor.json" in present:
        found.descriptor_version = _descriptor_version(found, directory)
    return found


def _read_tools(found: ContractFiles, directory: str, name: str) -> None:
    if os.path.islink(os.path.join(directory, "contracts")):
        what = "it is a symbolic link, which is not followed"
        _report(found, directory, "contracts", "contract-invalid", what, Severity.ERROR)
        return
    try:
        files = sorted(os.listdir(os.path.join(directory, "contracts")))
    except OSError:
        return
    for file in files:
        tool, suffix = os.path.splitext(file)
        # Editors leave backups and notes in the directory.
        if suffix not in _SUFFIXES:
            continue
        path = f"contracts/{file}"
        if found.one_line and len(found.contracts) + len(found.broken) >= MAX_TOOLS:
            what = (
                "not read, nor is what follows: an untrusted skill may have "
                f"{MAX_TOOLS} tools"
            )
            _report(found, directory, path, "contract-many", what, Severity.WARNING)
            break
        if not _TOOL.fullmatch(tool):
            what = (
                "the file name is not a valid tool name; use letters, digits, - and _"
            )
            _report(found, directory, path, "contract-name", what, Severity.ERROR)
            continue
        callable_name = f"{name}/{tool}"
        if callable_name in found.contracts or callable_name in found.broken:
            what = f"ignored, because {callable_name} is already defined"
            _report(found, directory, path, "contract-twice", what, Severity.WARNING)
            continue
        _read(found, directory, path, callable_name)


def _read(found: ContractFiles, directory: str, path: str, name: str) -> None:
    try:
        written = _document(found, path)
        document = visible_document(written, one_line=found.one_line)
        if document is not written and (hidden := hidden_in(written)):
            message = f"a text for a reader has {listed_kinds(hidden)}; removed"
            _report(
                found, directory, path, "hidden-characters", message, Severity.WARNING
            )
        contract = Contract.from_dict(document, name=name)
        _require_object(contract)
        found.contracts[name] = contract
        return
    except InvalidSkillError as error:
        reason = error
    except Exception as error:
        # A contract can come from an untrusted source: a case that the compiler does
        # not foresee must not affect the other skills. The log has the traceback,
        # because it is an error in this library too.
        _log.exception("%s/%s could not be compiled", directory, path)
        reason = InvalidSkillError(
            f"the contract cannot be compiled ({type(error).__name__})"
        )
    # Kept, so that a call of it gets the reason instead of "no such callable".
    found.broken[name] = reason
    _report(found, directory, path, "contract-invalid", str(reason), Severity.ERROR)


def _require_object(contract: Contract) -> None:
    """Refuse an input schema for anything but an object: no provider and no MCP client
    accepts such a tool.
    """
    stated = (
        contract.input.document.get("type", "object")
        if isinstance(contract.input.document, dict)
        else "object"
    )
    if "object" not in (stated if isinstance(stated, list) else [stated]):
        raise InvalidSkillError(
            f"contract {contract.name}: `input` has the type {stated!r}; arguments "
            "are an object"
        )


def _document(found: ContractFiles, path: str) -> Any:
    """Return the value of the file, JSON or YAML.

    Raises:
        InvalidSkillError: it cannot be read.
    """
    try:
        text = found.read(path, MAX_CONTRACT_BYTES).decode("utf-8-sig")
        if path.endswith(".json"):
            return json.loads(text, parse_constant=_refuse)
        return _parse_yaml(text)
    except ResourceNotFoundError as error:
        raise InvalidSkillError(f"{path} cannot be read: {error}") from None
    except YamlFault as error:
        where = f" - at line {error.line}" if error.line else ""
        raise InvalidSkillError(f"{path} is not valid YAML: {error}{where}") from None
    except RecursionError:
        raise InvalidSkillError(f"{path} is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise InvalidSkillError(f"{path} is not valid JSON: {error}") from None
    except ValueError as error:
        raise InvalidSkillError(
            f"{path} is not valid JSON: {' '.join(str(error).split())[:200]}"
        ) from None


def _refuse(constant: str) -> Any:
    # NaN and Infinity are accepted by Python, but are not JSON (RFC 8259, section 6).
    raise ValueError(f"{constant} is not a JSON number")


def _parse_yaml(text: str) -> Any:
    """Return the value of a YAML document with JSON's types: a date becomes a
    string.
    """
    import yaml

    read_yaml(
        text, max_depth=200
    )  # raises if the document is too deep or too large for what follows
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        raise YamlFault(" ".join(str(error).split())[:200]) from None
    # YAML types outside JSON, such as dates, become strings; keys become strings as in
    # JSON.
    try:
        return json.loads(json.dumps(value, default=str))
    except TypeError:  # only a key can be of another type now: a date, a list
        raise YamlFault("a key is not a text; write it in quotes") from None


def _descriptor_version(found: ContractFiles, directory: str) -> str | None:
    try:
        document = _document(found, "descriptor.json")
    except InvalidSkillError as error:
        _report(
            found,
            directory,
            "descriptor.json",
            "descriptor-invalid",
            str(error),
            Severity.ERROR,
        )
        return None
    version = document.get("version") if isinstance(document, dict) else None
    return version if isinstance(version, str) else None


def _report(
    found: ContractFiles,
    directory: str,
    path: str,
    rule: str,
    message: str,
    severity: Severity,
) -> None:
    found.diagnostics.append(Diagnostic(rule, severity, f"{directory}/{path}", message))
