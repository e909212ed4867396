"""The error for a missing optional dependency: it names the extra to install."""

from __future__ import annotations

__all__ = ["missing_extra"]


def missing_extra(error: ModuleNotFoundError, extra: str) -> ModuleNotFoundError:
    """Return the error to raise in place of *error*, the failed import of a package that *extra* installs.

    >>> print(missing_extra(ModuleNotFoundError("No module named 'langgraph'", name="langgraph"), "agents"))
    No module named 'langgraph'; install it with: pip install 'skillruntime[agents]'
    """
    return ModuleNotFoundError(f"{error}; install it with: pip install 'skillruntime[{extra}]'", name=error.name)
