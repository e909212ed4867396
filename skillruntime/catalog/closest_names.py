"""The names that are most like a wrong one: suggestions for a model that misspelt the name of a skill. Pure."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["closest_names"]


def closest_names(name: str, names: Iterable[str], limit: int) -> list[str]:
    """Return the *names* that share the most letter pairs with *name* (Dice coefficient), the best first."""
    wanted = _pairs(name[:200])
    scored: list[tuple[float, str]] = []
    for own in names:
        # A hostile name of 256 letters would share pairs with every query.
        if len(own) > 100:
            continue
        pairs = _pairs(own)
        common = len(wanted & pairs)
        if common:
            scored.append((-2 * common / (len(wanted) + len(pairs)), own))
    # By score, then by name: the same suggestions on every machine.
    scored.sort()
    # Below 0.3 the names share a few pairs by chance; a wrong suggestion sends a model astray.
    return [own for score, own in scored[:limit] if score <= -0.3]


def _pairs(name: str) -> set[str]:
    text = f" {name.lower().replace('_', '-').strip()} "
    return {text[position : position + 2] for position in range(len(text) - 1)}
