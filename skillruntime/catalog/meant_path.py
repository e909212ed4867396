"""Find the listed file that an inexactly written path means. Pure.

Models and instructions write the path of a file in many ways: in another case, with a
backslash, after the skill's name or a variable, with the part of a page behind it.

Law: a listed path means itself; any other path means a file only if exactly one listed
file fits. A text that leads upwards is never read as a path.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["folded", "meant_path", "plain_path", "readings"]

_QUOTES = "\"'`"
_SCHEME = lazy_pattern(r"(?:file|skill)://(?:localhost(?=/))?", re.IGNORECASE)
# Placeholders for the directory in instructions: `{baseDir}/`, `${CLAUDE_SKILL_DIR}/`,
# `$SKILL_ROOT/`, `<skill-dir>/`.
_PLACEHOLDER = lazy_pattern(r"(?:\$?\{\w[\w.-]*+\}|\$\w++|<\w[\w .-]*+>)(?:/|$)")
_DRIVE = lazy_pattern(r"[A-Za-z]:")


def meant_path(
    written: str, listed: Collection[str], roots: Collection[str]
) -> str | None:
    """Return the path in *listed* that *written* means; None if there is not exactly
    one.

    *roots* are possible prefixes of such a path: names, and absolute directories. The
    directory of the file may be missing, because instructions may just say
    ``comment.py``.

    >>> meant_path("./FORMS.md#fields", ["forms.md", "logo.png"], [])
    'forms.md'
    >>> meant_path("comment.py", ["scripts/comment.py"], [])
    'scripts/comment.py'
    >>> meant_path("PDF/forms.md", ["forms.md", "pdf/forms.md"], ["pdf"]) is None
    True
    """
    if written in listed:
        return written
    wanted = {folded(path) for path in readings(written, roots)}
    meant = [path for path in listed if folded(path) in wanted]
    if not meant:
        # The SKILL.md files of the 17 skills in anthropics/skills name 10 files in this
        # way.
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
                # On Linux and macOS a name may contain a backslash.
                relative = _relative(path)
                if relative is not None:
                    paths[relative] = None
    return list(paths)


def plain_path(written: str) -> str:
    """Return *written* without the characters that are never part of a path:
    surrounding blanks and line ends, quotes, and the scheme of an address.

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
    """Return *path* in the form for comparisons: without case, and composed, because
    macOS and some archives decompose letters.
    """
    return unicodedata.normalize("NFC", path).casefold()


def _without_roots(path: str, roots: Collection[str]) -> Iterable[str]:
    """Yield *path*, and the rest of it below one of *roots* or a placeholder."""
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
    """Return *path* with one ``/`` between its parts; None if it is absolute."""
    if not _is_relative(path):
        return None
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def _is_relative(path: str) -> bool:
    return not path.startswith(("/", "~", "\\")) and _DRIVE.match(path) is None
