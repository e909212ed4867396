"""Read the block at the top of a script that declares its dependencies (PEP 723),
without running the script.
"""

from __future__ import annotations

from typing import NamedTuple

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["InlineMetadata", "parse_inline_metadata"]

# The regular expression of PEP 723, section "Specification".
_BLOCK = lazy_pattern(
    r"(?m)^# /// (?P<type>[a-zA-Z0-9-]+)$\s(?P<content>(^#(| .*)$\s)+)^# ///$"
)


class InlineMetadata(NamedTuple):
    """What a script declares: ``dependencies`` as PEP 508 texts, and the Python
    versions it is for.
    """

    dependencies: tuple[str, ...] = ()
    requires_python: str | None = None


def parse_inline_metadata(source: str) -> InlineMetadata:
    """Return what *source* declares; empty if there is no block, or it is malformed.

    >>> lines = ["# /// script", '# dependencies = ["feedparser>=6", "pypdf"]', "# ///"]
    >>> parse_inline_metadata("\\n".join(lines) + "\\n").dependencies
    ('feedparser>=6', 'pypdf')
    """
    blocks = [match for match in _BLOCK.finditer(source) if match["type"] == "script"]
    # PEP 723: "there MUST NOT be multiple TYPE blocks".
    if len(blocks) != 1:
        return InlineMetadata()
    import tomllib  # few scripts have a block

    lines = blocks[0]["content"].splitlines()
    try:
        document = tomllib.loads("\n".join(line[2:] for line in lines))
    except tomllib.TOMLDecodeError:
        return InlineMetadata()
    dependencies = document.get("dependencies")
    if not isinstance(dependencies, list):
        dependencies = []
    requires_python = document.get("requires-python")
    if not isinstance(requires_python, str):
        requires_python = None
    texts = [item for item in dependencies if isinstance(item, str)]
    return InlineMetadata(tuple(texts), requires_python)
