"""Free a forked child of the locks that lost threads hold.

A fork copies the locks that the parent's threads hold, but only the thread that forks
(POSIX, fork). A child that takes such a lock waits forever. This module has two
remedies: one for the locks of this library, and one for the locks of imports, since
many functions of the library import modules at their first call.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from collections.abc import Callable
from typing import Any, Protocol
from weakref import WeakSet

__all__ = ["HasLocks", "renew_in_child", "renew_locks_of"]


class HasLocks(Protocol):
    """An object that owns locks."""

    def renew_locks(self) -> None:
        """Replace each lock with a new, free one."""


_with_locks: WeakSet[Any] = WeakSet()


def renew_locks_of(owner: HasLocks) -> None:
    """Give *owner* new locks in each forked child, as long as *owner* lives."""
    _with_locks.add(owner)


def renew_in_child(renew: Callable[[], None]) -> None:
    """Call *renew*, which replaces the locks of a module, in each forked child."""
    if hasattr(os, "register_at_fork"):  # Windows has no fork
        os.register_at_fork(after_in_child=renew)


def _renew_all() -> None:
    for owner in list(_with_locks):
        owner.renew_locks()


def _forget_lost_imports() -> None:
    """Forget the unfinished imports of lost threads, so that this process can import
    the modules.

    Python renews its global import lock in a child, but not the locks of single
    modules: importing a module that another thread was importing would wait forever
    (CPython 3.11 to 3.14, ``importlib._bootstrap._ModuleLock``). Waiting in the parent
    before the fork was tried, but then modules with their own fork hooks (logging) were
    registered too late.
    """
    # These names are private. Without them a child may wait, as it did before.
    locks = getattr(sys.modules.get("_frozen_importlib"), "_module_locks", {})
    own = get_ident()
    for name, reference in list(locks.items()):
        if getattr(reference(), "owner", own) in (None, own):
            continue
        locks.pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if not getattr(spec, "_initializing", False):
            continue
        # Include a package's submodules: they become its attributes when they are
        # imported.
        for each in list(sys.modules):
            if each == name or each.startswith(f"{name}."):
                del sys.modules[each]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lost_imports)
    os.register_at_fork(after_in_child=_renew_all)
