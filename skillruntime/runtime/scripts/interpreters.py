"""Find the interpreter of a script, and build its environment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from skillruntime.errors import ToolNotAvailableError

__all__ = [
    "GIVEN_VARIABLES",
    "SANDBOX_PATH",
    "SESSION_VARIABLES",
    "command_names",
    "find_interpreter",
    "interpreter_of",
    "script_environment",
]

_INTERPRETERS: Mapping[str, tuple[str, ...]] = {
    # Not `python3` from PATH: declared packages are looked for in this interpreter.
    ".py": (sys.executable,),
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
}

_LOCALE: tuple[str, ...] = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
_PASSED: tuple[str, ...] = (
    "PATH",
    "HOME",
    *_LOCALE,
    "TMPDIR",
    "TEMP",
    "TMP",
    # The certificates of a company's proxy.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    # Python on Windows does not start without it.
    "SYSTEMROOT",
    "USERPROFILE",
    "XDG_CACHE_HOME",
)
GIVEN_VARIABLES = frozenset({*_PASSED, "PYTHONUTF8", "PYTHONDONTWRITEBYTECODE"})
"""The variables that every script gets if the host has them; a sandbox sets its own
``HOME`` and directories for temporary files and caches.
"""
SESSION_VARIABLES = frozenset(
    {
        "COLUMNS",
        "DISPLAY",
        "EDITOR",
        "HOSTNAME",
        "LINES",
        "LOGNAME",
        "MAIL",
        "OLDPWD",
        "PAGER",
        "PWD",
        "SHELL",
        "SHLVL",
        "TERM",
        "USER",
        "VISUAL",
    }
)
"""The variables of every login (most are in POSIX, 8.3), and those that only change the
look of output: a script that does not get them needs no note.
"""
SANDBOX_PATH = "/usr/local/bin:/usr/bin:/bin"
"""The PATH of a script in a sandbox, after the directory of its interpreter.
"""


def command_names(script: str, first_line: bytes) -> tuple[str, ...] | None:
    """Return the commands of which one must be installed to run *script*; None if
    *script* is a program itself.

    *first_line* is the first line of the file: a script without a known suffix names
    its interpreter there.

    >>> command_names("scripts/run.mjs", b""), command_names("run", b"")
    (('node',), None)
    >>> command_names("run", b"#!/usr/bin/env -S deno run")
    ('deno',)
    """
    known = _INTERPRETERS.get(PurePath(script).suffix.lower())
    if known is not None or not first_line.startswith(b"#!"):
        return known
    words = first_line[2:].decode("utf-8", "replace").split()
    if words and PurePath(words[0]).name == "env":
        # `env -S` splits one argument into words, and NAME=value sets a variable
        # (env(1)): neither is the command.
        arguments = [word for word in words[1:] if not word.startswith("-")]
        words = [word for word in arguments if "=" not in word]
    if not words:
        return None
    return (words[0],)


def find_interpreter(names: Iterable[str]) -> str | None:
    """Return the path of the first of *names* that is installed."""
    # A relative directory in PATH would be looked up in the workspace, where a script
    # can put a program of that name.
    path = os.pathsep.join(filter(os.path.isabs, os.get_exec_path()))
    for name in names:
        if executable := shutil.which(name, path=path):
            return executable
    return None


def interpreter_of(script: str | os.PathLike[str]) -> tuple[str, ...]:
    """Return the words that start *script*, before its own path; empty if it is
    executable itself.

    Raises:
        ToolNotAvailableError: no installed interpreter runs it.
    """
    path = PurePath(script)
    names = _INTERPRETERS.get(path.suffix.lower())
    if names is None:
        if os.access(script, os.X_OK):
            return ()
        raise ToolNotAvailableError(
            f"No interpreter is known for {path.name!r}, and the file is not "
            "executable",
            suggested_action=f"Tell the user to make {path.name!r} executable, or to "
            f"use one of: {', '.join(_INTERPRETERS)}",
        )
    interpreter = find_interpreter(names)
    if interpreter is not None:
        return (interpreter,)
    raise ToolNotAvailableError(
        f"{names[0]!r}, which runs {path.name!r}, is not installed",
        suggested_action=f"Ask the user to install {names[0]!r}",
    )


def script_environment(
    variables: Iterable[str], *, is_confined: bool
) -> dict[str, str]:
    """Return the environment of a script: an allow list, and those of *variables* that
    are set.

    In a sandbox (*is_confined*) the list holds the language and the time zone; the
    sandbox adds its own directories.
    """
    environment = {}
    passed = _PASSED
    if is_confined:
        environment["PATH"] = SANDBOX_PATH
        passed = _LOCALE
    for name in (*passed, *variables):
        if name in os.environ:
            environment[name] = os.environ[name]
    # The protocol is UTF-8 in every locale (PEP 540), and a compiled file would not be
    # the approved one.
    environment["PYTHONUTF8"] = "1"
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    return environment
