"""Finds untrusted skills whose names are easily confused with those of trusted ones. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from skillruntime.catalog.root_snapshot import Entry
from skillruntime.catalog.visibility import skeleton
from skillruntime.diagnostic import Diagnostic, Severity

__all__ = ["is_one_edit", "look_alikes"]

MIN_LENGTH = 4
"""Shorter names differ by one letter without any intention: ``pdf``, ``pdb``."""

# The tools of a conversation: a skill of such a name would be called in place of one of them.
_TOOLS = {skeleton(name): name for name in ("load_skill", "read_skill_resource", "call_skill", "search_skills")}


def look_alikes(entries: Iterable[Entry]) -> Iterator[Diagnostic]:
    """Yield a warning for each untrusted skill that looks like a trusted one, or differs by one letter."""
    everything = list(entries)
    for entry in everything:
        if not entry.root.trusted and (tool := _TOOLS.get(skeleton(entry.name))):
            message = f"the name {entry.name!r} is easily confused with the tool {tool!r} of this library"
            yield Diagnostic("look-alike-name", Severity.WARNING, entry.file, message, hint="rename the skill")
    trusted = {entry.name: entry.file for entry in everything if entry.root.trusted}
    if not trusted or len(trusted) == len(everything):
        return
    # Equal skeletons: another case, `_` for `-`, Cyrillic or Greek letters, 1 for l, rn for m.
    by_shape = {skeleton(name): name for name in trusted}
    # One edit leaves the first or the second half of a name as it is, so only names that share a half are compared.
    halves: dict[tuple[bool, str], list[str]] = defaultdict(list)
    for name in trusted:
        if len(name) >= MIN_LENGTH:
            middle = len(name) // 2
            halves[True, name[:middle]].append(name)
            halves[False, name[middle:]].append(name)
    for entry in everything:
        if entry.root.trusted:
            continue
        other = by_shape.get(skeleton(entry.name)) or _one_edit_away(entry.name, halves)
        if other is not None and other != entry.name:
            message = f"the name {entry.name!r} is easily confused with the trusted skill {other!r}"
            hint = "make sure that this is the skill you want"
            related = (trusted[other],)
            yield Diagnostic("look-alike-name", Severity.WARNING, entry.file, message, hint=hint, related=related)


def is_one_edit(one: str, other: str) -> bool:
    """Whether one letter is inserted, removed or replaced, or two neighbours are exchanged.

    >>> is_one_edit("pdf-tools", "pdf-tool"), is_one_edit("pdf-tools", "pfd-tools"), is_one_edit("pdf", "csv")
    (True, True, False)
    """
    if len(one) > len(other):
        one, other = other, one
    if len(other) - len(one) > 1 or one == other:
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    # Two neighbours in the wrong order are the commonest typing error; by plain edit distance that is two edits.
    swapped = one[start : start + 2] == other[start : start + 2][::-1] and one[start + 2 :] == other[start + 2 :]
    return one[start + 1 :] == other[start + 1 :] or swapped


def _one_edit_away(name: str, halves: dict[tuple[bool, str], list[str]]) -> str | None:
    for length in (len(name), len(name) - 1, len(name) + 1):
        middle = length // 2
        for key in ((True, name[:middle]), (False, name[len(name) - (length - middle) :])):
            for other in halves.get(key, ()):
                if is_one_edit(name, other):
                    return other
    return None
