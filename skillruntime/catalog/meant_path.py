"""Which of the listed files a path means that is not written as it is listed. Pure.

Models and instructions write the path of a file in many ways: in another case, with a
backslash, after the skill's name or a variable, with the part of a page behind it.

Law: a path that is listed means itself; any other one means a file only where exactly
one of those listed can be meant. What leads upwards is never read as a path.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from urllib.parse import unquote

__all__ = ["folded", "meant_path", "plain_path", "readings"]

_QUOTES = "\"'`"
_SCHEME = re.compile(r"(?:file|skill)://(?:localhost(?=/))?", re.IGNORECASE)
# What stands for the directory in instructions: `{baseDir}/`, `${CLAUDE_SKILL_DIR}/`,
# `$SKILL_ROOT/`, `<skill-dir>/`.
_PLACEHOLDER = re.compile(r"(?:\$?\{\w[\w.-]*+\}|\$\w++|<\w[\w .-]*+>)(?:/|$)")
_DRIVE = re.compile(r"[A-Za-z]:")


def meant_path(
    written: str, listed: Collection[str], roots: Collection[str] = ()
) -> str | None:
    """Return which path of *listed* is meant by *written*; None where it is not exactly
    one.

    *roots* are what may stand before such a path: names, and absolute directories. The
    directory of the file may be missing, as instructions name ``comment.py`` alone.

    >>> meant_path("./FORMS.md#fields", ["forms.md", "logo.png"])
    'forms.md'
    >>> meant_path("comment.py", ["scripts/comment.py"])
    'scripts/comment.py'
    >>> meant_path("PDF/forms.md", ["forms.md", "pdf/forms.md"], ["pdf"]) is None
    True
    """
    if written in listed:
        return written
    wanted = {folded(path) for path in readings(written, roots)}
    meant = [path for path in listed if folded(path) in wanted]
    if not meant:
        # 10 files of the 17 skills of anthropics/skills are named so in their SKILL.md.
        ends = tuple(f"/{path}" for path in wanted if path)
        meant = [path for path in listed if folded(path).endswith(ends)]
    if len(meant) == 1:
        return meant[0]
    return None


def readings(written: str, roots: Collection[str] = ()) -> list[str]:
    """Return the relative paths that *written* may mean, the most literal one first;
    ``""`` is the directory itself.

    >>> readings("`skill://pdf/a%20b.md#top`", ["pdf"])
    ['pdf/a b.md#top', 'a b.md#top', 'pdf/a b.md', 'a b.md']
    """
    plain = plain_path(written)
    texts = [plain]
    before, mark, _ = plain.rpartition("#")
    if mark and before:
        texts.append(before)
    paths: dict[str, None] = {}
    for text in texts:
        for form in (text, text.replace("\\", "/"), unquote(text)):
            if ".." in form.split("/"):
                continue
            for path in _without_roots(form, roots):
                # On Linux and macOS a backslash may be a letter of a name.
                relative = _relative(path)
                if relative is not None:
                    paths[relative] = None
    return list(paths)


def plain_path(written: str) -> str:
    """Return *written* without what is never a part of a path: blanks and line ends
    around it, quotes, and the scheme of an address.

    >>> plain_path(" 'file:///data/a%20b.csv' ")
    '/data/a b.csv'
    """
    text = written.strip()
    while len(text) > 1 and text[0] in _QUOTES and text[-1] == text[0]:
        text = text[1:-1].strip()
    scheme = _SCHEME.match(text)
    if scheme is not None:
        text = unquote(text[scheme.end() :])
    return text


def folded(path: str) -> str:
    """Return *path* as it is compared: without case, and composed, because macOS and
    some archives decompose letters.
    """
    return unicodedata.normalize("NFC", path).casefold()


def _without_roots(path: str, roots: Collection[str]) -> Iterable[str]:
    """Yield *path*, and what is left of it below one of *roots* or a placeholder."""
    yield path
    placeholder = _PLACEHOLDER.match(path)
    if placeholder is not None:
        path = path[placeholder.end() :]
        yield path
    for root in roots:
        if root.startswith("/") or _DRIVE.match(root):
            directory = f"{root.rstrip('/')}/"
            if f"{path}/".startswith(directory):
                yield path[len(directory) :]
            continue
        # The name, perhaps after the directory of all skills: `skills/pdf/forms.md`.
        parts = path.split("/")
        for number, part in enumerate(parts, start=1):
            if folded(part) == folded(root) and _is_relative(path):
                yield "/".join(parts[number:])
                break


def _relative(path: str) -> str | None:
    """Return *path* with one ``/`` between its parts; None where it is absolute."""
    if not _is_relative(path):
        return None
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_relative(path: str) -> bool:
    return not path.startswith(("/", "~", "\\")) and _DRIVE.match(path) is None
