"""Find the texts in accepted arguments that come from the caller. Pure.

A host may act on a text because the caller sent it: it copies a named file for a script
that it does not trust. A text that the contract's author supplies is not the caller's,
although it is among the arguments.

Law: a text counts if the call contains it, perhaps in another form (syntax, a container
in a text, quotes, a part that a migration split off), and the contract did not supply
it as a default, a member of an ``enum``, a ``const``, the name of a parameter (also one
reached by an alias) or a constant of a migration.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from skillruntime.contract.repair_rules import ALIAS, KEY_NAME
from skillruntime.contract.schemas.pointer import Path, ValuePath
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.subschemas import subschemas

if TYPE_CHECKING:
    from skillruntime.contract.contract import Accepted, Contract

__all__ = ["TextPlace", "caller_texts", "texts_in"]

_OF_NAMES = frozenset({ALIAS, KEY_NAME})


class TextPlace(NamedTuple):
    """The place of a text in the arguments; if *is_key*, the text is the last part of
    *path*.
    """

    path: Path
    is_key: bool = False


def caller_texts(contract: Contract, accepted: Accepted) -> frozenset[TextPlace]:
    """Return the places of the texts in the arguments of *accepted* that come from a
    text that the caller sent to *contract*.

    >>> from skillruntime.contract import Contract
    >>> schema = {"properties": {"file": {}, "log": {"default": ".env"}}}
    >>> contract = Contract.from_dict({"input": schema})
    >>> accepted = contract.accept({"file": "a.csv"})
    >>> accepted.arguments
    {'file': 'a.csv', 'log': '.env'}
    >>> sorted(caller_texts(contract, accepted))
    [TextPlace(path=('file',), is_key=False)]
    """
    sent = {text for _, text in texts_in(accepted.sent)}
    supplied: set[str] = set()
    for repair in accepted.repairs:
        if repair.rule in _OF_NAMES:
            continue  # this repair supplies a parameter's name, not a value
        texts = {text for _, text in texts_in(repair.after)}
        if repair.keeps_text:
            sent |= texts
        else:
            supplied |= texts
    is_migrated = accepted.migrated_from is not None
    if is_migrated:
        for migration in contract.migrations:
            supplied |= {text for _, text in texts_in(migration.constants)}
    found = set()
    # Search the arguments without the filled-in defaults, which are not the caller's.
    for place, text in texts_in(accepted.given):
        is_sent = text in sent or (is_migrated and _is_part_of(text, sent))
        if not is_sent or text in supplied:
            continue
        if not _is_of_contract(contract.input.references, place, text):
            found.add(place)
    return frozenset(found)


def texts_in(value: Any, path: Path = ()) -> Iterator[tuple[TextPlace, str]]:
    """Yield the texts of *value*, keys too, each with its place.

    >>> [text for place, text in texts_in({"a": ["b", 1]})]
    ['a', 'b']
    """
    # No recursion, because accepted arguments may be nested deeply.
    pending: list[tuple[Path, Any]] = [(path, value)]
    while pending:
        at, part = pending.pop()
        if isinstance(part, str):
            yield TextPlace(at), part
        elif isinstance(part, dict):
            for key, member in part.items():
                yield TextPlace((*at, key), is_key=True), key
                pending.append(((*at, key), member))
        elif isinstance(part, (list, tuple)):
            pending += [((*at, index), item) for index, item in enumerate(part)]


def _is_part_of(text: str, sent: set[str]) -> bool:
    """Return whether *text* was split off one of the texts *sent*."""
    return bool(text) and any(text in whole for whole in sent)


def _is_of_contract(references: References, place: TextPlace, text: str) -> bool:
    """Return whether the schema itself contains *text* at *place*, so that the caller
    had to send it or chose it from the author's values.
    """
    if place.is_key:
        around = subschemas(references, ValuePath(place.path[:-1]))
        return any(text in properties_of(schema) for schema in around)
    for schema in subschemas(references, ValuePath(place.path)):
        members = schema.get("enum")
        if isinstance(members, list) and text in members:
            return True
        if schema.get("const") == text:
            return True
    return False
