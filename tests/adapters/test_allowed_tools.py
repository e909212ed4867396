"""The parse table of ``allowed-tools``: `skillruntime/adapters/allowed_tools.py`."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.adapters.allowed_tools import ToolPattern, permits

GIT = {"command": "git log --oneline"}


@pytest.mark.parametrize(
    ("text", "tool", "scope"),
    [
        ("Read", "Read", None),
        ("Bash(git:*)", "Bash", "git:*"),
        ("Bash(git add:*, git commit:*)", "Bash", "git add:*, git commit:*"),
        ("Bash(npm run test)", "Bash", "npm run test"),
        ("WebFetch(domain:example.org)", "WebFetch", "domain:example.org"),
        ("mcp__github__create_issue", "mcp__github__create_issue", None),
        ("mcp__github__*", "mcp__github__*", None),
        ("Read()", "Read", ""),
    ],
)
def test_each_form_is_read(text: str, tool: str, scope: str | None) -> None:
    """The tool, and the text in its brackets."""
    assert ToolPattern.parse(text) == ToolPattern(tool, scope)


@pytest.mark.parametrize("text", ["", "Bash(git", "(git)", "Bash git", "Bash(git) x"])
def test_an_entry_that_is_not_a_pattern_allows_nothing(text: str) -> None:
    """A typing error never allows more."""
    assert ToolPattern.parse(text) is None
    assert not permits([text], "Bash", GIT)


@pytest.mark.parametrize(
    ("entry", "name", "arguments", "expected"),
    [
        ("Read", "Read", {"path": "/etc/hosts"}, True),
        ("Read", "read_file", {"file_path": "a"}, True),
        ("Read", "Write", {"path": "a"}, False),
        ("Bash", "shell", {"command": "anything; at all"}, True),
        ("Bash(*)", "bash", {"command": "anything"}, True),
        ("Bash(git:*)", "bash", GIT, True),
        ("Bash(git:*)", "bash", {"commands": ["git status"]}, True),
        ("Bash(git:*)", "bash", {"commands": ["git status", "ls"]}, False),
        ("Bash(git:*)", "bash", {"command": "gitx status"}, False),
        ("Bash(git:*)", "bash", {"command": "git status && rm x"}, False),
        ("Bash(git:*)", "bash", {"command": "git status\nrm x"}, False),
        ("Bash(git:*)", "bash", {"command": "git log | sh"}, False),
        ("Bash(git:*)", "bash", {"command": "git log $(rm x)"}, False),
        ("Bash(git:*)", "bash", {"command": "git log `rm x`"}, False),
        ("Bash(git:*)", "bash", {"command": "git log > x"}, False),
        ("Bash(git add:*)", "bash", {"command": "git add ."}, True),
        ("Bash(git add:*)", "bash", {"command": "git push"}, False),
        ("Bash(git add:*, git commit:*)", "bash", {"command": "git commit -m x"}, True),
        ("Bash(git add:*, git commit:*)", "bash", {"command": "git push"}, False),
        ("Bash(npm run test)", "bash", {"command": "npm run test"}, True),
        ("Bash(npm run test)", "bash", {"command": "npm run tests"}, False),
        ("Bash(npm run *)", "bash", {"command": "npm run a; rm x"}, False),
        ("Bash(git:*)", "bash", {"other": 1}, False),
        ("Read(docs/**)", "read_file", {"path": "docs/a/b.md"}, True),
        ("Read(docs/**)", "read_file", {"path": "./docs/a.md"}, True),
        ("Read(docs/**)", "read_file", {"path": "docs/../secret"}, False),
        ("Read(docs/**)", "read_file", {"path": "secret"}, False),
        ("WebFetch(domain:example.org)", "fetch", {"url": "https://api.example.org/x"}, True),
        ("WebFetch(domain:example.org)", "fetch", {"url": "https://example.org.evil.net/"}, False),
        ("WebFetch(domain:example.org)", "fetch", {"url": "https://evil.net/?example.org"}, False),
        ("WebFetch(domain:example.org)", "fetch", {"url": "http://[bad"}, False),
        ("mcp__github", "mcp__github__create_issue", {}, True),
        ("mcp__github__*", "mcp__github__create_issue", {}, True),
        ("mcp__github__create_issue", "mcp__github__create_issue", {}, True),
        ("mcp__github__create_issue", "mcp__github__delete_repository", {}, False),
        ("mcp__git", "mcp__github__create_issue", {}, False),
    ],
)
def test_each_form_allows_what_it_says(entry: str, name: str, arguments: dict[str, Any], expected: bool) -> None:
    """And nothing next to it: no second command, no way out of the directory, no other host."""
    assert permits([entry], name, arguments) is expected


def test_a_hosts_own_names_are_given() -> None:
    """``aliases`` says which of its tools are meant by a name of the field."""
    assert permits(["Bash(git:*)"], "run_in_container", GIT, {"Bash": ("run_in_container",)})
