"""Which fields of a SKILL.md known products reject or ignore: a dated table with its sources."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["PRODUCTS", "Product", "product_diagnostics"]

CHECKED_ON = "2026-11-22"
"""The day on which the sources below were read; products change."""

_PLAIN_NAME = re.compile("[a-z0-9]+(?:-[a-z0-9]+)*")
_FORMAT = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


@dataclass(frozen=True, slots=True)
class Product:
    """What one product does with the fields of a SKILL.md.

    It uses those in ``used``; any other is rejected if ``rejects_others``, else ignored. ``forbidden_words`` must not
    be in a name; with ``no_tags`` neither name nor description may have ``<`` or ``>``; with ``needs_plain_name`` a
    name has only lowercase letters, digits and single hyphens between them. ``limits`` are in characters.
    """

    title: str
    source: str
    used: frozenset[str]
    rejects_others: bool = False
    limits: Mapping[str, int] | None = None
    forbidden_words: tuple[str, ...] = ()
    no_tags: bool = False
    needs_directory_name: bool = False
    needs_plain_name: bool = False


_LIMITS = {"name": 64, "description": 1024, "compatibility": 500}
_CLAUDE_CODE = (
    *("name", "description", "when_to_use", "argument-hint", "arguments", "disable-model-invocation", "user-invocable"),
    *("allowed-tools", "disallowed-tools", "model", "effort", "context", "agent", "hooks", "paths", "shell"),
)

PRODUCTS = {
    "agentskills": Product(
        "the Agent Skills format",
        "agentskills.io/specification, and its validator skills-ref",
        frozenset(_FORMAT),
        rejects_others=True,
        limits=_LIMITS,
        needs_directory_name=True,
    ),
    "claude.ai": Product(
        "an upload to claude.ai or the Claude API",
        "platform.claude.com/docs/en/agents-and-tools/agent-skills/overview; quick_validate.py of anthropics/skills",
        frozenset(_FORMAT),
        rejects_others=True,
        limits=_LIMITS,
        forbidden_words=("anthropic", "claude"),
        no_tags=True,
        needs_plain_name=True,
    ),
    "claude-code": Product("Claude Code", "code.claude.com/docs/en/skills (2.1.176)", frozenset(_CLAUDE_CODE)),
    "codex": Product(
        "Codex",
        "developers.openai.com/codex/skills, and openai/codex codex-rs/core/src/skills/loader.rs",
        frozenset(("name", "description", "metadata")),
        limits={"name": 64, "description": 1024},
    ),
}
"""The products by the names that `validate --for` takes."""


def product_diagnostics(fields: Mapping[str, Any], directory: str, path: str, names: Iterable[str]) -> list[Diagnostic]:
    """Return what each product in *names* rejects (errors) and ignores (advice) of *fields*.

    *directory* is the name of the skill's directory.

    Raises:
        ValueError: an unknown product.
    """
    found: list[Diagnostic] = []
    for name in dict.fromkeys(names):
        if name not in PRODUCTS:
            raise ValueError(f"unknown product {name!r}; use one of {', '.join(PRODUCTS)}")
        product = PRODUCTS[name]
        hint = f"source, read on {CHECKED_ON}: {product.source}"
        found += [
            Diagnostic("product-rejects", Severity.ERROR, path, f"{product.title}: {message}", hint=hint)
            for message in _rejected(product, fields, directory)
        ]
        ignored = [key for key in fields if key not in product.used]
        if ignored and not product.rejects_others:
            message = f"{product.title} ignores {', '.join(map(repr, ignored))}"
            found.append(Diagnostic("product-ignores", Severity.ADVICE, path, message, hint=hint))
    return found


def _rejected(product: Product, fields: Mapping[str, Any], directory: str) -> Iterable[str]:
    if product.rejects_others:
        for key in fields:
            if key not in product.used:
                yield f"the field {key!r} is rejected"
    for key, limit in (product.limits or {}).items():
        value = fields.get(key)
        if isinstance(value, str) and len(value.strip()) > limit:
            yield f"{key} has {len(value.strip())} characters; at most {limit} are accepted"
    name, description = fields.get("name"), fields.get("description")
    for key, value in (("name", name), ("description", description)):
        if key in product.used and product.limits and not (isinstance(value, str) and value.strip()):
            yield f"{key} is required"
        elif product.no_tags and isinstance(value, str) and re.search("[<>]", value):
            yield f"{key} must not contain < or >"
    if isinstance(name, str):
        if product.needs_plain_name and name.strip() and not _PLAIN_NAME.fullmatch(name.strip()):
            yield "name must have only lowercase letters, digits and single hyphens between them"
        for word in product.forbidden_words:
            if word in name.lower():
                yield f"name must not contain {word!r}"
        if product.needs_directory_name and name.strip() != directory:
            yield f"name must be that of the directory, {directory!r}"
