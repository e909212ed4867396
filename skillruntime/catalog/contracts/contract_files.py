"""Read the contracts next to a SKILL.md, on demand and within limits; one invalid file
does not affect the others.
"""

from __future__ import annotations

import codecs
import json
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from skillruntime.catalog.contracts.visible_contract import hidden_in, visible_document
from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, load_yaml
from skillruntime.catalog.resources import read_bytes
from skillruntime.catalog.visibility import listed_kinds
from skillruntime.contract.contract import Contract
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["ContractFiles", "decode_text", "read_contract_files"]

MAX_CONTRACT_BYTES = 1024 * 1024
MAX_TOOLS = 128  # for one untrusted skill, as many as OpenAI accepts in a request

_log = logging.getLogger("skillruntime.catalog")
_SUFFIXES = (".json", ".yaml", ".yml")
# Providers accept letters, digits, `_` and `-` in the names of tools, at most 64
# characters.
_TOOL = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


@dataclass(slots=True)
class ContractFiles:
    """The contracts of one skill by callable name, the errors of invalid contracts, and
    the descriptor's version.
    """

    directory: str
    read: Callable[[str, int], bytes]
    contracts: dict[str, Contract] = field(default_factory=dict)
    broken: dict[str, InvalidSkillError] = field(default_factory=dict)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    descriptor_version: str | None = None
    one_line: bool = False

    def report(self, rule: str, severity: Severity, path: str, message: str) -> None:
        """Add a diagnostic for the file *path*, which is relative to the directory."""
        file = f"{self.directory}/{path}"
        self.diagnostics.append(Diagnostic(rule, severity, file, message))


def read_contract_files(
    directory: str,
    name: str,
    *,
    trusted: bool = True,
    read: Callable[[str, int], bytes] | None = None,
) -> ContractFiles:
    """Return the contracts in *directory*, which belongs to the skill *name*.

    Hidden characters are removed from texts for a reader; the texts of a skill that is
    not *trusted* become single lines.
    """
    files = ContractFiles(
        directory, read or partial(read_bytes, directory), one_line=not trusted
    )
    try:
        present = sorted(os.listdir(directory))
    except OSError:
        return files
    # JSON has precedence over YAML.
    candidates = [f"contract{suffix}" for suffix in _SUFFIXES]
    own = [path for path in candidates if path in present]
    if own:
        _read(files, own[0], name)
    for path in own[1:]:
        message = f"ignored, because {own[0]} is used"
        files.report("contract-twice", Severity.WARNING, path, message)
    if "contracts" in present:
        _read_tools(files, name)
    if "descriptor.json" in present:
        files.descriptor_version = _descriptor_version(files)
    return files


def _read_tools(files: ContractFiles, name: str) -> None:
    directory = os.path.join(files.directory, "contracts")
    if os.path.islink(directory):
        message = "it is a symbolic link, which is not followed"
        files.report("contract-invalid", Severity.ERROR, "contracts", message)
        return
    try:
        file_names = sorted(os.listdir(directory))
    except OSError:
        return
    for file_name in file_names:
        tool, suffix = os.path.splitext(file_name)
        # Skip other files: editors leave backups and notes in the directory.
        if suffix not in _SUFFIXES:
            continue
        path = f"contracts/{file_name}"
        if files.one_line and len(files.contracts) + len(files.broken) >= MAX_TOOLS:
            message = (
                "not read, nor is what follows: an untrusted skill may have "
                f"{MAX_TOOLS} tools"
            )
            files.report("contract-many", Severity.WARNING, path, message)
            break
        if not _TOOL.fullmatch(tool):
            message = (
                "the file name is not a valid tool name; use letters, digits, - and _"
            )
            files.report("contract-name", Severity.ERROR, path, message)
            continue
        callable_name = f"{name}/{tool}"
        if callable_name in files.contracts or callable_name in files.broken:
            message = f"ignored, because {callable_name} is already defined"
            files.report("contract-twice", Severity.WARNING, path, message)
            continue
        _read(files, path, callable_name)


def _read(files: ContractFiles, path: str, name: str) -> None:
    try:
        written = _document(files, path)
        document = visible_document(written, one_line=files.one_line)
        if document is not written:
            hidden = hidden_in(written)
            if hidden:
                message = f"a text for a reader has {listed_kinds(hidden)}; removed"
                files.report("hidden-characters", Severity.WARNING, path, message)
        contract = Contract.from_dict(document, name=name)
        _require_object(contract)
        files.contracts[name] = contract
        return
    except InvalidSkillError as error:
        reason = error
    except Exception as error:
        # A contract can come from an untrusted source: an unexpected exception in the
        # compiler must not affect the other skills. The traceback is logged, because
        # this is also a bug in this library.
        _log.exception("%s/%s could not be compiled", files.directory, path)
        reason = InvalidSkillError(
            f"the contract cannot be compiled ({type(error).__name__})"
        )
    # Kept, so that a call gets this error instead of "no such callable".
    files.broken[name] = reason
    files.report("contract-invalid", Severity.ERROR, path, str(reason))


def _require_object(contract: Contract) -> None:
    """Refuse an input schema for anything but an object: providers and MCP clients do
    not accept such a tool.
    """
    schema = contract.input.document
    if not isinstance(schema, dict):
        return
    stated = schema.get("type", "object")
    types = stated if isinstance(stated, list) else [stated]
    if "object" not in types:
        raise InvalidSkillError(
            f"contract {contract.name}: `input` has the type {stated!r}; arguments "
            "are an object"
        )


def decode_text(data: bytes) -> str:
    """Decode a contract's file: UTF-8, or UTF-16 with a byte-order mark, as Windows
    PowerShell writes it.

    Raises:
        UnicodeDecodeError: *data* is neither.
    """
    return data.decode("utf-16" if _is_utf_16(data) else "utf-8-sig")


def _is_utf_16(data: bytes) -> bool:
    return data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))


def _document(files: ContractFiles, path: str) -> Any:
    """Return the value of the JSON or YAML file.

    Raises:
        InvalidSkillError: the file cannot be read.
    """
    try:
        data = files.read(path, MAX_CONTRACT_BYTES)
        text = decode_text(data)
        if _is_utf_16(data):
            message = "the file is UTF-16, not UTF-8"
            files.report("not-utf-8", Severity.WARNING, path, message)
        if path.endswith(".json"):
            return json.loads(text, parse_constant=_refuse)
        return load_yaml(text)
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
        reason = " ".join(str(error).split())[:200]
        raise InvalidSkillError(f"{path} is not valid JSON: {reason}") from None


def _refuse(constant: str) -> Any:
    # Python accepts NaN and Infinity, but they are not JSON (RFC 8259, section 6).
    raise ValueError(f"{constant} is not a JSON number")


def _descriptor_version(files: ContractFiles) -> str | None:
    path = "descriptor.json"
    try:
        document = _document(files, path)
    except InvalidSkillError as error:
        files.report("descriptor-invalid", Severity.ERROR, path, str(error))
        return None
    if not isinstance(document, dict):
        return None
    version = document.get("version")
    if not isinstance(version, str):
        return None
    return version
