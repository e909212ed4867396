"""Find the environment variables that a script reads, and those that it needs.

The source is parsed, never imported or run, and no other file is read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from skillruntime.derive.script_kind import script_kind
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["ScriptVariables", "script_variables"]

SOURCE_LIMIT = 400_000
"""Bytes of a script that is read; a longer one is data, or generated."""

_MOST = 50
_NODE = lazy_pattern(
    r"\bprocess\.env(?:\.([A-Za-z_]\w*+)|\[[\"']([A-Za-z_]\w*+)[\"']\])"
)
_NAME = lazy_pattern(r"[A-Za-z_]\w{0,99}", re.ASCII)


@dataclass(frozen=True, slots=True)
class ScriptVariables:
    """The environment variables that a script names.

    Every run needs the ``needed`` ones; the other ones, ``read``, may have a default or
    belong to some runs.
    """

    needed: tuple[str, ...] = ()
    read: tuple[str, ...] = ()


# A script's variables are requested at the activation of its skill and twice at each
# call.
@lru_cache(maxsize=256)
def script_variables(source: bytes, path: str) -> ScriptVariables:
    """Return the variables that *source*, the script at *path* in its skill, names; at
    most 50.

    >>> script_variables(b'import os\\nprint(os.environ["TOKEN"])', "scripts/a.py")
    ScriptVariables(needed=('TOKEN',), read=())
    >>> script_variables(b': "${OUT:?}"\\necho "$KEY"', "scripts/a.sh")
    ScriptVariables(needed=('OUT',), read=('KEY',))
    """
    if len(source) > SOURCE_LIMIT:
        return ScriptVariables()
    text = source.decode("utf-8-sig", "replace")
    try:
        needed, read = _variables(text, script_kind(text, path))
    except RecursionError:  # the script is nested too deeply to be read
        return ScriptVariables()
    named = [name for name in needed if _NAME.fullmatch(name)]
    others = [name for name in read if _NAME.fullmatch(name) and name not in needed]
    return ScriptVariables(tuple(named[:_MOST]), tuple(others[:_MOST]))


def _variables(text: str, kind: str) -> tuple[list[str], list[str]]:
    # The readers of the other languages are not imported.
    if kind == "python":
        # Importing the Python parser takes longer than most scripts run.
        if "environ" not in text and "getenv" not in text:
            return [], []
        from skillruntime.derive.readers.python_variables import python_variables

        return python_variables(text)
    if kind == "shell":
        from skillruntime.derive.readers.shell_variables import shell_variables

        return shell_variables(text)
    if kind == "node":
        names = [one or other for one, other in _NODE.findall(text)]
        return [], list(dict.fromkeys(names))
    return [], []
