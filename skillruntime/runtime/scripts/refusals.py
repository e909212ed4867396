"""Recognize in a script's output that its sandbox refused something, and name the grant
that would help.

A sandbox keeps no record of its refusals: a filter of system calls answers with an
error number and reports nothing, and a file that was not copied is simply missing. So a
refusal is recognized by the texts that the languages' runtimes print for the error
number. That is a guess: the answer says "may", and a call is never refused because of
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from skillruntime.catalog.visibility import visible_line
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.grants import Grants, how_to_grant

__all__ = [
    "Ungranted",
    "missed_words",
    "named_dotfiles",
    "opens_connections",
    "shows_refused_network",
    "shows_refused_path",
]

_MOST_CHARACTERS = 20_000  # the last characters of a script's output that are searched
_MOST_WORDS = 200
_LONGEST_PATH = 300
_MOST_NAMED = 3

# Without a grant every socket(2) fails with EACCES, or the network has no way out
# (ENETUNREACH), and names cannot be resolved.
_REFUSED_NETWORK = lazy_pattern(
    # EAI_AGAIN of getaddrinfo(3): Python, bash and ssh; Node has its name
    r"in name resolution|\bEAI_AGAIN\b"
    # curl and git; ssh says "hostname"; wget
    r"|[Cc]ould not resolve host|unable to resolve host"
    # CURLE_COULDNT_CONNECT, curl's error for EACCES
    r"|\bcurl: \(7\)"
    # Node
    r"|\b(?:listen|connect|bind) EACCES\b"
    # bash and Go
    r"|\bsocket: [Pp]ermission denied"
    r"|[Nn]etwork is unreachable|\bENETUNREACH\b"
    # A server of the host, which the sandbox's loopback does not reach.
    r"|[Cc]onnection refused|\bECONNREFUSED\b"
    # Chromium (net/base/net_error_list.h)
    r"|\bnet::ERR_(?:CONNECTION_REFUSED|NAME_NOT_RESOLVED|INTERNET_DISCONNECTED"
    r"|ADDRESS_UNREACHABLE)\b"
    # Python names the refused file
    r"|\[Errno 13\] Permission denied(?!:)"
)
# A sandbox shows outside paths as read-only (EROFS), or refuses them (EACCES).
_REFUSED_PATH = lazy_pattern(
    r"[Rr]ead-only file system|[Pp]ermission denied|\bEROFS\b|\bEACCES\b"
)
_ABSOLUTE = lazy_pattern(r"(?<![\w.:/~*])/[\w.-]++(?:/[\w.@+-]++)*+")
_OF_THE_KERNEL = ("/dev/", "/proc/", "/sys/")
_NOT_THERE = lazy_pattern(
    # strerror(3) of ENOENT, which Node writes with a small letter
    r"[Nn]o such file or directory|\bENOENT\b"
    r"|[Cc]an't open file|[Cc]annot find module"
)
# git names the missing directory in only one of its two messages.
_NO_REPOSITORY = "not a git repository"
# A quoted path may contain blanks.
_QUOTED = lazy_pattern(r"'([^'\n]++)'|\"([^\"\n]++)\"|‘([^’\n]++)’")
_WORD = lazy_pattern(r"[^\s'\"`‘’“”,;<>()\[\]{}]++")

# Signs that a script opens connections: modules of Python and of Node, and shell
# commands.
_OPENS_CONNECTIONS = lazy_pattern(
    rb"^[ \t]*+(?:import|from)[ \t]++(?:[\w.]++[ \t]*+,[ \t]*+)*?(?:socket|ssl"
    rb"|urllib\.request|urllib3|requests"
    rb"|http\.client|http\.server|httpx|aiohttp|websockets|smtplib|ftplib|imaplib)\b"
    rb"|(?:\brequire\(|\bfrom |\bimport )['\"](?:node:)?(?:net|http|https|tls|dns|ws"
    rb"|axios|undici|node-fetch)['\"]"
    rb"|(?<![\w.])fetch\("
    rb"|^[^#\n]*?(?<![\w.-])(?:curl|wget)[ \t]+(?:-|['\"$]|https?:)"
    rb"|/dev/tcp/",
    re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Ungranted:
    """Access that a script lacked, which may explain its failure. *grants* would give
    the access; *outside* stands for a directory that a message must not name.
    """

    grants: Grants = field(default_factory=Grants)
    outside: bool = False

    def __bool__(self) -> bool:
        return bool(self.grants) or self.outside

    def __str__(self) -> str:
        grants = self.grants
        lacking = ["the network"] if grants.network else []
        lacking += grants.environment
        paths = dict.fromkeys((*grants.files, *grants.dotfiles))
        for path in paths:
            # A directory is granted together with its dotfiles, so they are named with
            # it.
            if path == ".":
                lacking.append("the files of the workspace")
            else:
                lacking.append(repr(visible_line(path)))
        if self.outside:
            lacking.append("access to directories outside the workspace")
        if len(lacking) > 1:
            lacking[-2:] = [f"{lacking[-2]} and {lacking[-1]}"]
        return ", ".join(lacking)

    def to_dict(self) -> dict[str, Any]:
        """Return the missing grants by the fields of `Grants`."""
        stated = self.grants.to_dict()
        if self.outside:
            stated["write"] = True
        return stated

    def sentence(self, skill: str, given: Grants) -> str:
        """Return the sentence for an answer; *given* are the existing grants of
        *skill*.
        """
        how = how_to_grant(skill, given | self.grants, write=self.outside)
        return f"It ran without {self}, which may be why. {how}"


def shows_refused_network(written: str) -> bool:
    """Return whether a script's output has an error that a sandbox without network
    causes.

    >>> shows_refused_network("curl: (6) Could not resolve host: example.com")
    True
    >>> shows_refused_network("[Errno 13] Permission denied: 'report.txt'")
    False
    """
    return _REFUSED_NETWORK.search(written[-_MOST_CHARACTERS:]) is not None


def shows_refused_path(written: str, writable: Iterable[str]) -> bool:
    """Return whether a script's output shows the refusal of an absolute path outside
    *writable*.

    The path is not returned, because the script chose it: a message must not ask the
    host to open a directory that an untrusted script names.

    >>> shows_refused_path("touch: '/srv/a': Read-only file system", [])
    True
    """
    granted = [*writable]
    for line in written[-_MOST_CHARACTERS:].splitlines():
        if _REFUSED_PATH.search(line) is None:
            continue
        for path in _ABSOLUTE.findall(line):
            if path.startswith(_OF_THE_KERNEL):
                continue
            parts = PurePosixPath(path)
            if not any(parts.is_relative_to(directory) for directory in granted):
                return True
    return False


def missed_words(written: str) -> list[str]:
    """Return the words of the lines that report a missing file; they include paths that
    may be in the workspace.

    >>> missed_words("ok\\ncat: notes/a.md: No such file or directory")[:2]
    ['cat', 'notes/a.md']
    """
    words: dict[str, None] = {}
    for line in written[-_MOST_CHARACTERS:].splitlines():
        if _NO_REPOSITORY in line:
            words[".git"] = None
        if _NOT_THERE.search(line) is None:
            continue
        quoted = ["".join(groups) for groups in _QUOTED.findall(line)]
        for word in [*_WORD.findall(line), *quoted]:
            # The name that `shortened_paths` gives the script's working directory.
            path = word.rstrip(":.").removeprefix("workspace/")
            if path and len(path) <= _LONGEST_PATH:
                words[path] = None
    return [*words][-_MOST_WORDS:]


def opens_connections(source: bytes) -> bool:
    """Return whether the *source* of a script opens connections; it may also work
    without them.
    """
    return _OPENS_CONNECTIONS.search(source) is not None


def named_dotfiles(names: Iterable[str], source: bytes) -> tuple[str, ...]:
    """Return at most three of *names*, the withheld dotfiles, that the script's
    *source* mentions.

    A script that starts ``git`` names ``.git``.

    >>> named_dotfiles([".cache", ".git", "src/.env"], b"git log")
    ('.git',)
    """
    named = []
    for name in names:
        last = PurePosixPath(name).name.encode("utf-8", "surrogateescape")
        word = re.escape(last)
        if last == b".git":
            word = rb"(?:\.git|git)"
        if re.search(rb"(?<![\w.-])" + word + rb"(?![\w.-])", source):
            named.append(name)
    return tuple(named[:_MOST_NAMED])
