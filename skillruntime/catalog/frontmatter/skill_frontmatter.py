"""Read the fields of one skill's frontmatter. Only this module knows their keys and
their forms.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.catalog.visibility import visible_line

__all__ = ["SkillFrontmatter"]


class SkillFrontmatter(Mapping[str, Any]):
    """All fields as written, with scalars as strings; the properties convert the
    standard fields to their types.

    >>> fields = {"allowed-tools": "Bash(git add:*, git commit:*), Read"}
    >>> SkillFrontmatter(fields).allowed_tools
    ('Bash(git add:*, git commit:*)', 'Read')
    """

    __slots__ = ("_fields",)

    def __init__(self, fields: Mapping[str, Any] | None = None) -> None:
        self._fields = fields or {}

    def __getitem__(self, key: str) -> Any:
        return self._fields[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"SkillFrontmatter({self._fields!r})"

    @property
    def license(self) -> str | None:
        """The name of the licence, or of a file that contains it."""
        return _text(self.get("license"))

    @property
    def compatibility(self) -> str | None:
        """The skill's requirements on its environment, in its author's words."""
        return _text(self.get("compatibility"))

    @property
    def allowed_tools(self) -> tuple[str, ...]:
        """The tools that the skill asks to have pre-approved: ``("Bash(git:*)",
        "Read")``.
        """
        # The format defines `allowed-tools` as one string; real skills also write an
        # underscore, commas or a list.
        return _split_tools(self.get("allowed-tools", self.get("allowed_tools")))

    @property
    def metadata(self) -> dict[str, str]:
        """The ``metadata`` mapping, whose keys are free; a value that is not a string
        is converted to JSON.
        """
        return {
            key: value if isinstance(value, str) else _json(value)
            for key, value in self._inner.items()
        }

    @property
    def tags(self) -> tuple[str, ...]:
        """The keywords in lower case, from a list or comma-separated words in ``tags``,
        ``metadata.tags`` or ``keywords``.
        """
        value = self.get("tags") or self._inner.get("tags") or self.get("keywords")
        # `tags: [a, b]` is text if the frontmatter had to be repaired.
        if isinstance(value, str):
            words: list[Any] = value.strip("[]").split(",")
        elif isinstance(value, list):
            words = value
        else:
            return ()
        stripped = [word.strip() for word in words if isinstance(word, str)]
        return tuple(word.strip("\"'").lower() for word in stripped if word)

    @property
    def execution(self) -> dict[str, str]:
        """The stated fields among ``context``, ``agent``, ``model`` and ``effort``: the
        author's advice on how to run the skill.
        """
        stated = {key: _text(self.get(key)) for key in _EXECUTION}
        return {key: text for key, text in stated.items() if text}

    @property
    def versions(self) -> dict[str, str | None]:
        """The versions in the frontmatter, by key; the first one takes precedence."""
        return {
            "metadata.version": _text(self._inner.get("version")),
            "version": _text(self.get("version")),
        }

    @property
    def requirements(self) -> list[Any]:
        """The values of ``requires`` and ``metadata.requires``, unchecked."""
        stated = [self.get("requires"), self._inner.get("requires")]
        return [requirements for requirements in stated if requirements is not None]

    @property
    def _inner(self) -> Mapping[str, Any]:
        value = self.get("metadata")
        return value if isinstance(value, dict) else {}


_EXECUTION = ("context", "agent", "model", "effort")


def _split_tools(value: Any) -> tuple[str, ...]:
    tools: list[str] = []
    if isinstance(value, list):
        for item in value:
            tools += _split_tools(item)
        return tuple(tools)
    if not isinstance(value, str):
        return ()
    word = ""
    depth = 0
    for character in value:
        if character == "(":
            depth += 1
        elif character == ")" and depth > 0:
            depth -= 1
        # A comma or a space inside parentheses belongs to the tool: `Bash(git add:*,
        # git commit:*)`.
        is_separator = character.isspace() or character == ","
        if is_separator and depth == 0:
            tools.append(word)
            word = ""
        else:
            word += character
    tools.append(word)
    return tuple(tool for tool in tools if tool)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return visible_line(value or "") or None
    return _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
