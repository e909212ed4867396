"""The answers that are made of several servers' answers: the handshake, the lists, and the first that succeeds."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skillruntime.adapters.mcp_proxy.json_text import (
    Malformed,
    Span,
    elements,
    members,
    object_in,
    replaced,
    text_of,
    to_bytes,
)
from skillruntime.adapters.mcp_proxy.messages import Id, Message, to_error, to_result

__all__ = [
    *("ENDED", "INVALID_PARAMS", "JOINT", "LISTS", "METHOD_NOT_FOUND", "NAMED", "Question", "capabilities_of"),
    *("first_answer", "joined_list", "member", "merged_handshake", "object_at", "prefixes_of"),
]

JOINT = "__"
METHOD_NOT_FOUND, INVALID_PARAMS, ENDED = -32601, -32602, -32000
LISTS = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "tasks/list": "tasks",
}
# Two servers may use one name; a URI or the id of a task says itself whose it is.
NAMED = ("tools", "prompts")
_IDENTIFIED_BY = {"resources": "uri", "tasks": "taskId"}


@dataclass(eq=False, slots=True)
class Question:
    """A request of the client that several servers are asked; its answer is made of theirs."""

    request: Message
    answer: Callable[[Question], bytes]
    waits: dict[Id, int] = field(default_factory=dict)
    """The ids that it has at the servers, and the server of each."""
    pages: dict[int, list[Message]] = field(default_factory=dict)
    errors: list[Message] = field(default_factory=list)
    first_wins: bool = False
    began: float = 0.0

    def results(self) -> dict[int, dict[str, Any]]:
        """Return the first result of each server that answered with an object."""
        firsts = ((server, object_in(pages[0].part("result"))) for server, pages in sorted(self.pages.items()))
        return {server: result for server, result in firsts if result is not None}


def merged_handshake(question: Question, names: Sequence[str], prefixes: Sequence[str]) -> bytes:
    """Return the answer to ``initialize`` or ``server/discover``: what any server can, and all instructions."""
    results = question.results()
    if question.request.method == "initialize":
        versions = [
            each["protocolVersion"] for each in results.values() if isinstance(each.get("protocolVersion"), str)
        ]
        if not versions:
            return first_answer(question)
        merged: dict[str, Any] = {"protocolVersion": min(versions)}  # the oldest, which all of them read
        return to_result(question.request.part("id"), to_bytes(merged | _described(results, names, prefixes)))
    if question.errors or not results:  # the client goes on with the handshake, which more servers know
        text = "Not all of the servers are of revision 2026-07-28"
        return to_error(question.request.part("id"), METHOD_NOT_FOUND, text)
    found = [each.get("supportedVersions") for each in results.values()]
    first, *others = [each if isinstance(each, list) else [] for each in found]
    merged = {
        "resultType": "complete",
        "supportedVersions": [version for version in first if all(version in each for each in others)],
        **_described(results, names, prefixes),
        # What is joined is fresh for as long as each part of it.
        "ttlMs": min((each["ttlMs"] for each in results.values() if isinstance(each.get("ttlMs"), int)), default=0),
        "cacheScope": "private",  # a server of the user's own is among them, perhaps
    }
    return to_result(question.request.part("id"), to_bytes(merged))


def joined_list(question: Question, key: str, prefixes: Sequence[str]) -> tuple[bytes, dict[str, tuple[int, str]]]:
    """Return one list of all servers' entries, which keep their bytes but for a tool's or a prompt's name.

    The second value says whose each entry is, and how it is named there.
    """
    owners: dict[str, tuple[int, str]] = {}
    entries: list[bytes] = []
    pages = [(server, page) for server, each in sorted(question.pages.items()) for page in each]
    for server, page in pages:
        for raw in _entries(page, key):
            span = object_at(raw).get(_IDENTIFIED_BY.get(key, "name"))
            own = text_of(raw, span) if span else None
            if own is None or span is None:
                entries.append(raw)
                continue
            shown = f"{prefixes[server]}{JOINT}{own}" if key in NAMED else own
            # Two servers may list one URI: the first of the file keeps it.
            owners.setdefault(shown, (server, own))
            entries.append(replaced(raw, {span: to_bytes(shown)}) if key in NAMED else raw)
    body = b'"%s":[%s]' % (key.encode(), b",".join(entries))
    if any(member(page, "resultType") for _, page in pages):
        lifetimes = [int(found) for _, page in pages if (found := member(page, "ttlMs")).isdigit()]
        body += b',"resultType":"complete","ttlMs":%d,"cacheScope":"private"' % min(lifetimes, default=0)
    return to_result(question.request.part("id"), b"{" + body + b"}"), owners


def prefixes_of(names: Sequence[str]) -> list[str]:
    """Return the prefix of each server's tool names: its own name, with ``_`` for what clients do not take.

    >>> prefixes_of(["git", "my files", "my.files"])
    ['git', 'my_files', 'my_files_2']
    """
    found: list[str] = []
    for name in names:
        # OpenAI and Anthropic reject a tool whose name has any other character.
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name) or "server"
        same = sum(1 for each in found if each == plain or re.fullmatch(re.escape(plain) + r"_\d+", each))
        found.append(f"{plain}_{same + 1}" if same else plain)
    return found


def first_answer(question: Question) -> bytes:
    """Return the first result, else the last error, of those that were asked."""
    answers = [pages[0] for pages in question.pages.values()] or question.errors[-1:]
    given = question.request.part("id")
    if not answers:
        return to_error(given, METHOD_NOT_FOUND, f"No server answers {question.request.method}")
    return replaced(answers[0].raw, {answers[0].parts["id"]: given})


def capabilities_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a server says in its handshake that it can."""
    found = result.get("capabilities")
    return found if isinstance(found, dict) else {}


def member(message: Message, key: str) -> bytes:
    """Return the bytes of a member of the result of *message*; empty where there is none."""
    result = message.part("result")
    start, end = object_at(result).get(key, (0, 0))
    return result[start:end]


def object_at(raw: bytes) -> dict[str, Span]:
    """Return where the members of the object *raw* are; none where it is something else, or broken inside."""
    try:
        return dict(members(raw)) if raw[:1] == b"{" else {}
    except Malformed:
        return {}


def _entries(page: Message, key: str) -> list[bytes]:
    listed = member(page, key)
    try:
        found = [listed[a:b] for a, b in elements(listed)] if listed[:1] == b"[" else []
    except Malformed:
        return []
    # SDK clients reject a whole list for one entry that is not an object.
    return [each for each in found if each[:1] == b"{"]


def _merge(target: dict[str, Any], source: dict[str, Any]) -> None:
    for key, value in source.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            # What one of them announces (`listChanged`, say), the client must expect.
            target[key] = target.get(key) or value


def _described(results: dict[int, dict[str, Any]], names: Sequence[str], prefixes: Sequence[str]) -> dict[str, Any]:
    from skillruntime._version import __version__

    capabilities: dict[str, Any] = {}
    for each in results.values():
        _merge(capabilities, capabilities_of(each))
    texts = [
        f"{names[server]} (its tools are named {prefixes[server]}{JOINT}...): {each['instructions']}"
        for server, each in results.items()
        if isinstance(each.get("instructions"), str) and each["instructions"]
    ]
    return {
        "capabilities": capabilities,
        "serverInfo": {"name": "skillruntime mcp-proxy", "version": __version__},
        **({"instructions": "\n\n".join(texts)} if texts else {}),
    }
