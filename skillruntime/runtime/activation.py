"""An activated skill as a model reads it, and the digests that tell one edition of it from the next."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from skillruntime.catalog.skill import Skill

__all__ = ["as_text", "digest_of", "fingerprint", "identity_of", "render_activation"]


def render_activation(skill: Skill, to_tool_name: Callable[[str], str] = str) -> str:
    """Return an activated skill as a model reads it: the instructions, then the files, then the callable tools.

    *to_tool_name* gives the name under which the model calls a tool.
    """
    parts = [f'<skill name="{skill.name}">', skill.body.strip(), "</skill>"]
    contracts = skill.contracts
    # A script with a contract is called, not read: its source would cost the model thousands of tokens for nothing.
    resources = [item for item in skill.resources() if not (contracts and item.path.startswith("scripts/"))]
    if resources:
        parts.append("Files, read with the skill's name and this path:")
        parts += [f"- {resource.path} ({resource.bytes:,} bytes)" for resource in resources]
    if contracts:
        parts.append("Callable:")
        parts += [f"- {to_tool_name(name)}: {contract.description}" for name, contract in contracts.items()]
    return "\n".join(parts)


def fingerprint(skill: Skill) -> str:
    """Return what identifies this edition of the skill: a digest of its instructions, contracts and scripts."""
    return skill.digest()


def digest_of(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of *text*."""
    # surrogatepass: a SKILL.md may hold half of a surrogate pair, and a digest must not raise for it.
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_text(value: Any) -> str:
    """Return *value* as it counts against tokens: text itself, anything else as compact JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):  # a cycle, or keys that JSON does not have
        return repr(type(value))


def identity_of(name: str, arguments: Any, version: str | None) -> str:
    """Return a digest that is equal for two calls with equal name, arguments and version."""
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(arguments))
    return hashlib.sha256(repr((name, version, text)).encode("utf-8", "surrogatepass")).hexdigest()
