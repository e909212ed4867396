"""Compare the requirements of a skill's contract beyond its workspace with the host's
grants.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.catalog.visibility import visible_line

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = [
    "Grants",
    "Requirements",
    "checked_grants",
    "granted_to",
    "how_to_grant",
    "requirements_of",
]


@dataclass(frozen=True, slots=True)
class Grants:
    """The host's permissions for a skill's script: the network, environment variables,
    further directories, files of the workspace.

    ``write`` are absolute paths of directories that the script may change, in addition
    to its workspace. No part of such a path may be a link when the script starts: a
    script of an earlier call could have made it. ``dotfiles`` are paths in the
    workspace with a part that begins with a dot (``".git"``): with a grant, an
    untrusted script gets a copy if its call names the path or a directory around it.
    ``files`` are paths in the workspace that are copied at each call, although no
    argument names them (``"."`` is the workspace). Give grants for a skill
    (``SkillRuntime(grants={"pdf": Grants(network=True)})``), for one call (``call(...,
    grants=...)``), or as the answer of ``approve``.

    >>> Grants(network=True) | Grants(environment=("TOKEN",))
    Grants(network=True, environment=('TOKEN',), write=(), dotfiles=(), files=())
    """

    network: bool = False
    environment: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    dotfiles: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.network, bool):  # "no" would be a yes
            raise TypeError(
                f"Grants.network is True or False, not {self.network!r:.80}"
            )
        for name in ("environment", "write", "dotfiles", "files"):
            # A single string would be read as its letters: "KEY" as the variables K, E
            # and Y.
            if isinstance(getattr(self, name), str):
                raise TypeError(
                    f"Grants.{name} takes a tuple of strings, not one string"
                )
            object.__setattr__(self, name, tuple(map(os.fspath, getattr(self, name))))
        for path in self.write:
            if not os.path.isabs(path):  # noqa: PTH117
                raise ValueError(f"Grants.write takes absolute paths, not {path!r}")
        object.__setattr__(self, "write", tuple(map(os.path.normpath, self.write)))
        for name in ("dotfiles", "files"):
            paths = tuple(map(os.path.normpath, getattr(self, name)))
            for path in paths:
                if os.path.isabs(path) or ".." in PurePath(path).parts:  # noqa: PTH117
                    raise ValueError(
                        f"Grants.{name} takes paths relative to the workspace, not "
                        f"{path!r}"
                    )
            object.__setattr__(self, name, paths)

    def __or__(self, other: Grants) -> Grants:
        return Grants(
            self.network or other.network,
            tuple(dict.fromkeys((*self.environment, *other.environment))),
            tuple(dict.fromkeys((*self.write, *other.write))),
            tuple(dict.fromkeys((*self.dotfiles, *other.dotfiles))),
            tuple(dict.fromkeys((*self.files, *other.files))),
        )

    def __bool__(self) -> bool:
        return bool(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """Return the grants as a JSON object, without the values of variables."""
        stated = {
            "network": self.network,
            "environment": list(self.environment),
            "write": list(self.write),
            "dotfiles": list(self.dotfiles),
            "files": list(self.files),
        }
        return {name: value for name, value in stated.items() if value}


def how_to_grant(skill: str, grants: Grants, *, write: bool = False) -> str:
    """Return a sentence on how the host gives *skill* all of these *grants*,
    because a second such line of code would replace the first.

    *write* is for a directory that the host has to choose.

    >>> grants = Grants(network=True, environment=("TOKEN",))
    >>> how_to_grant("pdf", grants).partition("grants=")[2]
    "{'pdf': Grants(network=True, environment=('TOKEN',))})"
    """
    parts = []
    if grants.network:
        parts.append("network=True")
    if grants.environment:
        parts.append(f"environment={grants.environment!r}")
    directories = [repr(directory) for directory in grants.write]
    if write:
        directories.append("DIRECTORY")
    if directories:
        parts.append(f"write=({', '.join(directories)},)")
    if grants.dotfiles:
        parts.append(f"dotfiles={grants.dotfiles!r}")
    if grants.files:
        parts.append(f"files={grants.files!r}")
    return (
        f"Tell the user: the host can grant it, SkillRuntime(grants={{{skill!r}: "
        f"Grants({', '.join(parts)})}})"
    )


class Requirements(NamedTuple):
    """The requirements of a contract: ``requires.network``, ``.write``,
    ``.environment``, and ``run.environment``.

    ``network`` and ``write`` are the contract's own words, for people; ``optional`` are
    the variables that the script uses if they are set.
    """

    network: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, tuple[str, ...]]:
        """Return the requirements as a JSON object; empty if there are none."""
        stated = {
            "network": self.network,
            "write": self.write,
            "environment": (*self.environment, *self.optional),
        }
        return {name: value for name, value in stated.items() if value}


def requirements_of(contract: Contract) -> Requirements:
    """Return the requirements of *contract*; values of a wrong type are left out."""
    stated, run = contract.requires, contract.run
    return Requirements(
        _words(stated.get("network"), "any host"),
        _words(stated.get("write"), "outside the workspace"),
        _words(stated.get("environment")),
        _words(run.get("environment")),
    )


def checked_grants(grants: Mapping[str, Grants] | None) -> dict[str, Grants]:
    """Check that *grants* are grants by name, and return them.

    Raises:
        TypeError: they are not; otherwise a wrong grant would only be noticed at the
            first call of its skill.
    """
    by_name = dict(grants or {})
    for name, granted in by_name.items():
        if not isinstance(name, str) or not isinstance(granted, Grants):
            raise TypeError(
                'grants are {"skill": Grants(...)}, not '
                f"{{{name!r:.80}: {granted!r:.80}}}"
            )
    return by_name


def granted_to(name: str, grants: Mapping[str, Grants]) -> Grants:
    """Return the host's grants for the callable *name* (``pdf/extract``): its own and
    those of its skill.
    """
    # A version range ("pdf@^1") is part of a name that a model writes; grants are given
    # to the skill.
    plain = name.partition("@")[0]
    skill = plain.partition("/")[0]
    granted = grants.get(skill, _NOTHING)
    if plain == skill:
        return granted
    return granted | grants.get(plain, _NOTHING)


_NOTHING = Grants()


def _words(stated: Any, if_true: str = "") -> tuple[str, ...]:
    if stated is True and if_true:
        return (if_true,)
    if isinstance(stated, str):
        stated = [stated]
    if not isinstance(stated, list):
        return ()
    # A person reads these words before an approval, perhaps in a terminal: show each on
    # one line, with nothing hidden.
    words = [visible_line(word) for word in stated if isinstance(word, str)]
    return tuple(dict.fromkeys(words))
