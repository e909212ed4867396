"""Resolve a package's public names at their first use, so that importing the package
costs almost no time.

A package lists its names only in its `__init__.pyi`. Type checkers and editors read
that file, and this module reads it when a name is first used. Each line has the form
``from skillruntime.module import Name as Name``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

# Imported before any thread can be importing a module of this package.
import skillruntime.forks  # noqa: F401  it registers handlers for forked children
from skillruntime.extras import missing_extra

__all__ = ["lazy_exports"]

_PUNCTUATION = str.maketrans("(,)", "   ")


def lazy_exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and ``__dir__`` (PEP 562) for *package*, which must
    have an `__init__.pyi`.

    >>> import skillruntime.catalog
    >>> getattr_, dir_ = lazy_exports("skillruntime.catalog")
    >>> getattr_("discover").__module__
    'skillruntime.catalog.discovery.discovery'
    """

    @cache
    def modules() -> dict[str, str]:
        # This does the same as `pkgutil.get_data`, whose import takes longer than the
        # rest of a start, and also works in archives.
        module = sys.modules[package]
        path = f"{module.__path__[0]}/__init__.pyi"
        # A package has a loader, and every loader of files has `get_data`.
        loader: Any = module.__spec__.loader  # type: ignore[union-attr]
        stub = loader.get_data(path).decode("utf-8")
        exports: dict[str, str] = {}
        # A name may end in "from", so a statement begins with its line.
        for statement in f"\n{stub}".split("\nfrom ")[1:]:
            # ``module import Name as Name``, in parentheses if the line is long.
            target, _, *names = statement.translate(_PUNCTUATION).split()
            exports |= dict.fromkeys(names[2::3], target)
        return exports

    def resolve(name: str) -> Any:
        if name == "__all__":
            public_names = sorted(modules())
            return [public for public in public_names if _is_installed(package, public)]
        module = None
        if not name.startswith("_"):
            module = modules().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            return getattr(import_module(module), name)
        except ModuleNotFoundError as error:
            raise missing_extra(error) from None

    return resolve, lambda: sorted(modules())


def _is_installed(package: str, name: str) -> bool:
    """Return whether the packages that *name* needs are installed; ``from package
    import *`` imports only such names.
    """
    try:
        getattr(sys.modules[package], name)
    except ModuleNotFoundError:
        return False
    return True
