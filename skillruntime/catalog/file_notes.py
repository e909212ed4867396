"""What is unusual about a SKILL.md itself: its name, its directory, its links, its kind."""

from __future__ import annotations

import os

from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["notes_on_file", "what_it_is"]


def notes_on_file(root: str, directory: str, path: str, status: os.stat_result, *, is_link: bool) -> list[Diagnostic]:
    """Return what is unusual about the SKILL.md at *path*; *is_link*: its *directory* is a link."""
    found: list[Diagnostic] = []
    file_name = os.path.basename(path)  # noqa: PTH119
    if file_name != "SKILL.md":
        message = f"the file is named {file_name}, not SKILL.md"
        found.append(Diagnostic("file-name-case", Severity.WARNING, path, message))
    if is_link:
        target = os.path.realpath(directory)
        if not f"{target}{os.sep}".startswith(os.path.realpath(root).rstrip(os.sep) + os.sep):
            message = f"the skill's directory is a symbolic link out of its root, to {target}"
            found.append(Diagnostic("directory-link", Severity.WARNING, path, message))
    if status.st_nlink > 1:
        # Package installers create hard links (uv, pnpm); an attacker could use one to show a file from elsewhere.
        message = f"the file has {status.st_nlink} hard links; a change under another path changes this skill"
        found.append(Diagnostic("hard-link", Severity.ADVICE, path, message))
    return found


def what_it_is(kind: int) -> str:
    """Return what a file is whose mode has the bits *kind* (S_IFMT)."""
    return _KINDS.get(kind, "not a regular file")


_KINDS = {
    0o040000: "a directory",
    0o010000: "a FIFO",
    0o140000: "a socket",
    0o020000: "a device",
    0o060000: "a device",
}
