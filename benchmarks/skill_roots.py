"""Where a benchmark's skills lie: directories as they are, archives unpacked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

__all__ = ["skill_roots"]


def skill_roots(paths: Iterable[Path], folder: Path) -> list[Path]:
    """Return the directories to discover: an archive is unpacked into *folder*, without
    what is malformed.

    Raises:
        SystemExit: there is no SKILL.md below one of *paths*.
    """
    found: list[Path] = []
    for path in paths:
        roots = [path] if path.is_dir() else _unpacked(path, folder)
        if not any(next(root.rglob("SKILL.md"), None) for root in roots):
            archive = next(path.glob("*.tar.gz"), None) if path.is_dir() else None
            hint = f"; its archive {archive} holds some: give that" if archive else ""
            raise SystemExit(f"there is no SKILL.md below {path}{hint}")
        found += roots
    return found


def _unpacked(path: Path, folder: Path) -> list[Path]:
    import tarfile  # an archive is one way of two

    with tarfile.open(path) as archive:
        members = [
            member
            for member in archive
            if member.isfile() and "malformed" not in Path(member.name).parts
        ]
        archive.extractall(folder, members=members, filter="data")
    parts = [Path(member.name).parts for member in members]
    return sorted({folder / names[0] / names[1] for names in parts if len(names) > 2})
