"""Find the files of a skill that its instructions start. Pure.

Most skills keep their scripts in ``scripts/``. Of 5,487 real skills, 57 start other
files by a command in SKILL.md, 101 in all: ``tools/eyeball.py``, ``src/recovery.js``,
``scripts/setup.sh``; 20 of the skills have no other script.

Rule: a file is started if a command names it after an interpreter (``python
tools/check.py``, ``uv run x.py``, ``python -m src.cli``), or as its first word,
beginning with ``./`` or with a placeholder for the skill's directory.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["started_files"]

# The placeholder that may precede a path: the skill's directory, in the forms that
# `meant_path` knows.
_PLACE = r"(?:<\w[\w .-]*+>|\$?\{\w[\w.-]*+\}|\$\w++)"
_PATH = rf"{_PLACE}?[^\s`\"'()\[\]{{}};&|<>$]++"
_STARTED = lazy_pattern(
    # An interpreter, and its options: `python3.12 -u`, `uv run --quiet python`.
    r"(?<![\w./-])(?:python[\d.]*+|bash|sh|node|bun|deno[ \t]+run|uv[ \t]+run)"
    r"(?:[ \t]++(?:-(?!m\b)-?[\w-]++|python[\d.]*+(?=[ \t])))*+"
    rf"[ \t]++(?:-m[ \t]++(?P<module>[\w.]++)|[\"']?(?P<file>{_PATH}))"
    # A file that is run by itself, at the beginning of a line or of inline code.
    rf"|(?:^[ \t]*+(?:\$[ \t]++)?|`)[\"']?(?=\./|{_PLACE}/)(?P<program>{_PATH})",
    re.MULTILINE,
)


def started_files(instructions: str, paths: Collection[str]) -> list[str]:
    """Return the *paths* of a skill's files that its *instructions* start, in the given
    order.

    >>> text = "Run `python3 {baseDir}/tools/check.py FILE`, see `lib/check.py`."
    >>> started_files(text, ["lib/check.py", "tools/check.py"])
    ['tools/check.py']
    >>> started_files("python -m src.cli --all", ["src/cli.py"])
    ['src/cli.py']
    """
    listed = {path for path in paths if _is_named(path, instructions)}
    started: set[str] = set()
    if not listed:
        return []
    for match in _STARTED.finditer(instructions):
        if match["module"] is not None:
            started.add(f"{match['module'].replace('.', '/')}.py")
            continue
        word = match["file"] or match["program"]
        parts = word.removeprefix("./").rstrip(".,:").split("/")
        if ".." in parts:
            continue
        # The path in the instructions may begin with the directory of the skill, or of
        # all skills.
        for number in range(len(parts)):
            path = "/".join(parts[number:])
            if path in listed:
                started.add(path)
                break
    return [path for path in paths if path in started]


def _is_named(path: str, instructions: str) -> bool:
    """Return whether *instructions* contain *path*, as a file or as a module."""
    module = path.removesuffix(".py").replace("/", ".")
    return path in instructions or module in instructions
