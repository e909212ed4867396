"""Write the changelog entry for a new version of a contract."""

from __future__ import annotations

from collections.abc import Iterator

from skillruntime.compatibility.comparison import Change, Verdict
from skillruntime.compatibility.finding import Bump
from skillruntime.compatibility.old_calls import OldCalls
from skillruntime.contract.versions import Version

__all__ = ["release_notes"]

_HEADINGS = {
    Bump.MAJOR: "Breaking",
    Bump.MINOR: "New or changed",
    Bump.PATCH: "Texts and other details",
}


def release_notes(
    name: str, version: str | None, verdict: Verdict, old_calls: OldCalls | None = None
) -> str:
    """Return the changes in *verdict* as Markdown, under a heading with the contract's
    *name* and its new *version*.

    *old_calls* tell whether calls of the previous version still work.

    >>> from skillruntime.compatibility import compare
    >>> old = {"input": {"properties": {"count": {"type": "integer"}}}}
    >>> new = {"input": {"properties": {"limit": {"type": "integer"}}}}
    >>> print(release_notes("digest", "2.0.0", compare(old, new)))
    ### digest 2.0.0
    <BLANKLINE>
    Breaking:
    <BLANKLINE>
    - `count`: 'count' was renamed to 'limit'
    """
    blocks = [f"### {name} {version or ''}".rstrip()]
    for bump, heading in _HEADINGS.items():
        changes = [change for change in verdict.changes if change.bump is bump]
        if changes:
            lines = "\n".join(_line(change) for change in changes)
            blocks += [f"{heading}:", lines]
    if not verdict.changes:
        blocks.append("Nothing changed for callers.")
    blocks += _of_calls(version, verdict, old_calls)
    return "\n\n".join(blocks)


def _line(change: Change) -> str:
    """Return the list item for *change*; places are written ``options.rows[].name``."""
    place = change.path[1:].replace("/", ".").replace(".*", "[]")
    if change.side == "output":
        place = f"output {place}".rstrip()
    elif change.side != "input":
        place = change.side
    if not place:
        return f"- {change.why}"
    return f"- `{place}`: {change.why}"


def _of_calls(
    version: str | None, verdict: Verdict, old_calls: OldCalls | None
) -> Iterator[str]:
    """Yield a sentence on old calls, if a change is breaking."""
    if old_calls is None or verdict.bump is not Bump.MAJOR or not old_calls.calls:
        return
    if not old_calls.are_taken:
        yield f"{old_calls}; the others must be changed."
        return
    if any(call.is_migrated for call in old_calls.calls):
        end = f" until {_next_major(version)}" if version else ""
        yield f"Old calls still work{end}: they are converted ({old_calls})."
    else:
        yield f"Old calls still work ({old_calls})."


def _next_major(version: str) -> Version:
    return Version.parse(version).bump("major")
