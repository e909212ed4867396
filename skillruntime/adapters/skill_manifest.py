"""A skill's manifest: its frontmatter, and each file's digest and size (MCP's Skills extension, SEP-2640).

Law: digest and size of a file are those of the bytes that `read_file` returns.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, unquote

from skillruntime.catalog.frontmatter import cut
from skillruntime.catalog.resources import list_resources, read_bytes
from skillruntime.catalog.skill import SkillMetadata
from skillruntime.catalog.visibility import listed_kinds
from skillruntime.catalog.visible_contract import hidden_in
from skillruntime.catalog.yaml_reader import YamlFault, read_yaml
from skillruntime.errors import InvalidSkillError, ResourceNotFoundError

EXTENSION = "io.modelcontextprotocol/skills"

MAX_FILES = 512
MAX_BYTES = 16 * 1024 * 1024
"""The largest skill that every host must accept (the extension's section "Limits")."""

_SCHEME = "skill://"  # the extension's own URI scheme (SEP-2640, "Resource URIs")


def to_uri(name: str, path: str = "SKILL.md") -> str:
    """Return the address of a skill's file.

    >>> to_uri("pdf-processing", "references/a b.md")
    'skill://pdf-processing/references/a%20b.md'
    """
    return f"{_SCHEME}{quote(name)}/{quote(path)}"


def split_uri(uri: str) -> tuple[str, str] | None:
    """Return the skill and the path that *uri* names; None for any other address.

    >>> split_uri("skill://pdf-processing/references/a%20b.md")
    ('pdf-processing', 'references/a b.md')
    """
    if not uri.startswith(_SCHEME):
        return None
    name, _, path = uri.removeprefix(_SCHEME).partition("/")
    return (unquote(name), unquote(path)) if name and path else None


def to_entry(metadata: SkillMetadata) -> dict[str, Any]:
    """Return the extension's entry of a skill: ``uri``, ``frontmatter`` and the complete ``resources``.

    Raises:
        InvalidSkillError: its frontmatter cannot be read, or it is larger than a host must accept.
    """
    directory = os.path.dirname(metadata.path)  # noqa: PTH120 - as everywhere in the catalog, no pathlib
    resources: list[dict[str, Any]] = []
    total = 0
    for path in _paths(metadata):
        try:
            data = read_file(metadata, path) if path == "SKILL.md" else read_bytes(directory, path, MAX_BYTES)
        except ResourceNotFoundError as error:
            raise InvalidSkillError(f"The skill {metadata.name!r} cannot be published: {error}") from None
        total += len(data)
        if len(resources) >= MAX_FILES or total > MAX_BYTES:
            raise InvalidSkillError(
                f"The skill {metadata.name!r} has more than {MAX_FILES} files or {MAX_BYTES // 1024**2} MiB"
            )
        resources.append({"uri": to_uri(metadata.name, path), "digest": _digest(data), "size": len(data)})
    frontmatter = _frontmatter(read_file(metadata, "SKILL.md"))
    if frontmatter.get("name") != metadata.name or not frontmatter.get("description"):
        raise InvalidSkillError(f"The frontmatter of {metadata.name!r} does not say its name and description")
    # The extension wants the frontmatter as it is written, so one that hides something cannot be in an entry.
    if hidden := hidden_in(frontmatter):
        raise InvalidSkillError(f"The frontmatter of {metadata.name!r} has {listed_kinds(hidden)}")
    return {"uri": to_uri(metadata.name), "frontmatter": frontmatter, "resources": resources}


def read_file(metadata: SkillMetadata, path: str) -> bytes:
    """Return the bytes of a skill's file, ``SKILL.md`` and its contracts among them.

    Raises:
        ResourceNotFoundError: the skill has no such file.
    """
    asked = os.path.basename(metadata.path) if path == "SKILL.md" else path  # noqa: PTH119
    return read_bytes(os.path.dirname(metadata.path), asked, MAX_BYTES)  # noqa: PTH120


def _frontmatter(data: bytes) -> dict[str, Any]:
    """Return the frontmatter of a SKILL.md as JSON, with the types that YAML gives its values."""
    block = cut(data).block or ""
    try:
        read_yaml(block)  # bounded: a bomb of aliases ends here
    except YamlFault as fault:
        raise InvalidSkillError(f"The frontmatter cannot be read: {fault}") from None
    import yaml  # imported here, because importing it takes as long as starting Python

    try:
        value = yaml.load(block, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        # JSON has no dates: they become text. What it has no form for, as NaN, is not published.
        return dict(json.loads(json.dumps(value, default=str, allow_nan=False)))
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise InvalidSkillError(f"The frontmatter cannot be written as JSON: {error}") from None


def _paths(metadata: SkillMetadata) -> Iterator[str]:
    """Every file: SKILL.md, the contracts, which a catalog does not list, and all that it does."""
    directory = os.path.dirname(metadata.path)  # noqa: PTH120
    yield "SKILL.md"
    own = ["contract.json", "contract.yaml", "contract.yml", "descriptor.json"]
    inside = os.path.join(directory, "contracts")  # noqa: PTH118
    if os.path.isdir(inside):  # noqa: PTH112
        own += [f"contracts/{name}" for name in sorted(os.listdir(inside))]  # noqa: PTH208
    yield from (path for path in own if os.path.isfile(os.path.join(directory, path)))  # noqa: PTH113, PTH118
    yield from (resource.path for resource in list_resources(directory))


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
