"""What a skill's contract asks for beyond its workspace, and what the host grants
it.
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

__all__ = ["Grants", "Requirements", "granted_to", "requirements_of"]


@dataclass(frozen=True, slots=True)
class Grants:
    """What the host lets a skill's script use: the network, variables of its
    environment, further directories, files of the workspace.

    ``write`` are absolute paths of directories that the script may change, in addition
    to its workspace. No part of one may be a link when the script starts: a script of
    an earlier call could have made it. ``dotfiles`` are paths in the workspace with a
    part that begins with a dot (``".git"``): with a grant, an untrusted script gets a
    copy of what is there, if its call names it or what is around it. ``files`` are
    paths in the workspace of which it gets a copy at each call, though no argument
    names them (``"."`` is the workspace). Give grants for a skill
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
            # One string would count as its letters: "KEY" as the variables K, E and Y.
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
        """Return what is granted, without the values of variables."""
        stated = {
            "network": self.network,
            "environment": list(self.environment),
            "write": list(self.write),
            "dotfiles": list(self.dotfiles),
            "files": list(self.files),
        }
        return {name: value for name, value in stated.items() if value}


class Requirements(NamedTuple):
    """What a contract asks for: ``requires.network``, ``.write``, ``.environment``, and
    ``run.environment``.

    ``network`` and ``write`` are the words of the contract, for a person to read;
    ``optional`` are the variables that the script takes if they are given.
    """

    network: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    environment: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, tuple[str, ...]]:
        """Return what is asked for; empty where nothing is."""
        stated = {
            "network": self.network,
            "write": self.write,
            "environment": (*self.environment, *self.optional),
        }
        return {name: value for name, value in stated.items() if value}


def requirements_of(contract: Contract) -> Requirements:
    """Return what *contract* asks for; values of another type than the format's are
    left out.
    """
    stated, run = contract.requires, contract.run
    return Requirements(
        _words(stated.get("network"), "any host"),
        _words(stated.get("write"), "outside the workspace"),
        _words(stated.get("environment")),
        _words(run.get("environment")),
    )


def granted_to(name: str, grants: Mapping[str, Grants]) -> Grants:
    """Return what the host grants the callable *name* (``pdf/extract``): its own grants
    and those of its skill.
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
