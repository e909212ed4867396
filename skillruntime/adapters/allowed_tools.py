"""The patterns of a skill's ``allowed-tools``, and whether a tool call matches one.

The Agent Skills format leaves their syntax to clients; the forms here are those of Claude Code: ``Read``,
``Bash(git:*)`` (a command that begins with these words), ``Read(docs/**)`` (a path or a text with wildcards),
``WebFetch(domain:example.org)``, ``mcp__server``, ``mcp__server__tool``, ``mcp__server__*``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

ALIASES: Mapping[str, tuple[str, ...]] = {
    "bash": ("shell", "terminal", "execute", "run_command"),
    "read": ("read_file",),
    "write": ("write_file",),
    "edit": ("edit_file",),
    "glob": ("glob_search",),
    "grep": ("grep_search",),
    "ls": ("list_directory",),
    "webfetch": ("fetch", "web_fetch"),
    "websearch": ("web_search",),
}
"""Names that LangChain and related libraries have for the tools of Claude Code."""

_SHAPE = re.compile(r"(?P<tool>[^()\s]+)(?:\((?P<scope>.*)\))?", re.DOTALL)
_CHAINED = re.compile(r"[;&|<>`\n\r]|\$\(")  # shell syntax that can run a second command or write a file
_TEXT_KEYS = ("command", "cmd", "commands", "path", "file_path", "filename", "url", "pattern", "query")


@dataclass(frozen=True, slots=True)
class ToolPattern:
    """One entry of ``allowed-tools``: the ``tool``, and the ``scope`` in its brackets, None where there are none."""

    tool: str
    scope: str | None = None

    @classmethod
    def parse(cls, text: str) -> ToolPattern | None:
        """Return the pattern that *text* writes, or None if it is not a pattern.

        >>> ToolPattern.parse("Bash(git:*)")
        ToolPattern(tool='Bash', scope='git:*')
        """
        found = _SHAPE.fullmatch(text.strip())
        return cls(found["tool"], found["scope"]) if found else None

    def fits(self, name: str, arguments: Mapping[str, Any], aliases: Mapping[str, tuple[str, ...]] = ALIASES) -> bool:
        """Whether this pattern allows a call of the tool *name* with *arguments*."""
        if not _names(self.tool, name, aliases):
            return False
        if self.scope is None or self.scope.strip() in ("*", ":*"):
            return True
        given = _text(arguments)
        if given is None:
            return False
        return any(_fits(scope.strip(), given, arguments) for scope in self.scope.split(","))


def permits(
    entries: Iterable[str], name: str, arguments: Mapping[str, Any], aliases: Mapping[str, tuple[str, ...]] = ALIASES
) -> bool:
    """Whether any of *entries*, as `SkillMetadata.allowed_tools` gives them, allows the call.

    >>> permits(("Read", "Bash(git:*)"), "shell", {"command": "git status"})
    True
    >>> permits(("Read", "Bash(git:*)"), "shell", {"command": "git status; rm -r ."})
    False
    """
    # An entry that cannot be parsed allows nothing: a typing error must not widen what may run.
    patterns = (ToolPattern.parse(entry) for entry in entries)
    return any(pattern is not None and pattern.fits(name, arguments, aliases) for pattern in patterns)


def _fits(scope: str, given: str, arguments: Mapping[str, Any]) -> bool:
    # The scopes of Claude Code's permission rules: "domain:", a prefix with ":*", a command, a path with wildcards.
    if scope.startswith("domain:"):
        return _in_domain(given, scope.removeprefix("domain:"))
    if scope.endswith(":*"):
        # Whole words, so that "git:*" does not allow "gitleaks".
        words = scope.removesuffix(":*").split()
        return _CHAINED.search(given) is None and given.split()[: len(words)] == words
    if _is_command(arguments):
        return _CHAINED.search(given) is None and fnmatchcase(given.strip(), scope)
    # fnmatch knows no directories: "docs/../secret" would match "docs/**".
    return ".." not in re.split(r"[/\\]", given) and fnmatchcase(given.removeprefix("./"), scope.removeprefix("./"))


def _names(pattern: str, name: str, aliases: Mapping[str, tuple[str, ...]]) -> bool:
    if pattern.startswith("mcp__"):
        # "mcp__server" allows all tools of that server; "mcp__server__tool" exactly one.
        if "*" in pattern:
            return fnmatchcase(name, pattern)
        return name == pattern or (pattern.count("__") == 1 and name.startswith(pattern + "__"))
    wanted = pattern.lower()
    return name.lower() == wanted or name in aliases.get(wanted, ()) or name in aliases.get(pattern, ())


def _is_command(arguments: Mapping[str, Any]) -> bool:
    return any(key in arguments for key in ("command", "cmd", "commands"))


def _text(arguments: Mapping[str, Any]) -> str | None:
    """The text that a scope is matched against; None if no argument, or more than one, could be meant."""
    for key in _TEXT_KEYS:
        value = arguments.get(key)
        # LangChain's ShellTool takes "commands": a list. More than one command cannot be matched by one pattern.
        if isinstance(value, list) and len(value) == 1:
            (value,) = value
        if isinstance(value, str):
            return value
        if value is not None:
            return None
    texts = [value for value in arguments.values() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 and len(arguments) == 1 else None


def _in_domain(url: str, domain: str) -> bool:
    try:
        host = (urlsplit(url).hostname or "").rstrip(".").lower()
    except ValueError:
        return False
    wanted = domain.strip().removeprefix("*.").lower()
    return bool(wanted) and (host == wanted or host.endswith("." + wanted))
