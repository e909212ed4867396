"""Watches the roots of a catalog and yields a new catalog whenever a skill is added, edited or removed."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from typing import Any

from skillruntime.catalog.catalog import SkillCatalog

__all__ = ["watch"]

Changes = Callable[..., AsyncIterator[Any]]
"""Called with the directories to watch; yields each time one of them may have changed."""


async def watch(catalog: SkillCatalog, *, changes: Changes | None = None) -> AsyncIterator[SkillCatalog]:
    """Yield the new catalog after each change; entries of unchanged skills stay the same, so prompts stay cached.

    *changes* reports changes; by default it is the ``watchfiles`` library, from the extra ``watch``. A change to a
    file other than a SKILL.md yields nothing.

    Raises:
        ModuleNotFoundError: ``watchfiles`` is not installed.
    """
    # A root that does not exist yet cannot be watched.
    directories = [root.path for root in catalog.roots if os.path.isdir(root.path)]  # noqa: PTH112
    if changes is None:
        changes = _watchfiles
    async for _ in changes(*directories):
        fresh = catalog.refresh()
        if fresh is not catalog:
            catalog = fresh
            yield catalog


def _watchfiles(*directories: str) -> AsyncIterator[Any]:
    try:
        from watchfiles import awatch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "Watching skills requires watchfiles: pip install 'skillruntime[watch]'", name="watchfiles"
        ) from error
    return awatch(*directories)
