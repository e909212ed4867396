"""Rename the aliases that a contract declares for its parameters, names that models
write instead, before validation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from skillruntime.contract.repair_rules import ALIAS
from skillruntime.contract.repairs.record import Repair
from skillruntime.contract.schemas.plain_json import is_same
from skillruntime.contract.schemas.pointer import format_pointer
from skillruntime.errors import ErrorCode, SkillError, SkillInputError


def names_by_alias(document: Mapping[str, Any]) -> dict[str, str]:
    """Map each alias in the contract *document* to its parameter.

    >>> names_by_alias({"aliases": {"path": ["file_path", "file"]}})
    {'file_path': 'path', 'file': 'path'}
    """
    names: dict[str, str] = {}
    for name, aliases in document.get("aliases", {}).items():
        for alias in aliases:
            names[alias] = name
    return names


def alias_faults(
    document: Mapping[str, Any], declared: Collection[str], older: Collection[str]
) -> list[str]:
    """Return the faults of the aliases in *document*.

    An alias must mean a *declared* parameter, and must not itself be a parameter of
    this version or of *older* ones.
    """
    faults: list[str] = []
    names: dict[str, str] = {}
    for name, aliases in document.get("aliases", {}).items():
        if name not in declared:
            faults.append(f"/aliases: {name!r} is not a parameter of the contract")
        for alias in aliases:
            if alias in declared:
                faults.append(f"/aliases/{name}: {alias!r} is a parameter itself")
            elif alias in older:
                faults.append(
                    f"/aliases/{name}: {alias!r} is a parameter of an older version; "
                    "migrations rename it"
                )
            elif alias in names:
                faults.append(
                    f"/aliases/{name}: {alias!r} is an alias of {names[alias]!r} too"
                )
            names.setdefault(alias, name)
    return faults


def with_own_names(
    arguments: dict[str, Any], names: Mapping[str, str]
) -> tuple[dict[str, Any], tuple[Repair, ...]]:
    """Return *arguments* with each alias renamed, and a repair for each; *names* maps
    aliases to parameters.

    If several names of a parameter have the same value, one is kept, with the form sent
    under the parameter's own name.

    Raises:
        SkillInputError: two names of one parameter have different values.
    """
    renamed: dict[str, Any] = {}
    repairs: list[Repair] = []
    for key, value in arguments.items():
        name = names.get(key, key)
        # Prefer the value under the parameter's own name, if it was sent.
        kept = renamed.setdefault(name, arguments.get(name, value))
        if kept is not value and not is_same(kept, value):
            raise _differing(name, key)
        if name != key:
            repairs.append(Repair(format_pointer((key,)), ALIAS, key, name))
    return renamed, tuple(repairs)


def _differing(name: str, alias: str) -> SkillInputError:
    error = SkillError(
        ErrorCode.INVALID_INPUT,
        f"{name!r} was sent under two names, {alias!r} too, with different values",
        recoverable=True,
        details={"path": format_pointer((name,))},
        suggested_action=f"Send {name!r} alone",
    )
    return SkillInputError("A parameter was sent twice", skill_errors=[error])
