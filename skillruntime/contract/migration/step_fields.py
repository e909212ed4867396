"""Read the document of one migration step field by field, and collect all its faults."""

from __future__ import annotations

from typing import Any, TypeAlias

from skillruntime.contract.migration.locations import Tokens, common_prefix
from skillruntime.contract.schemas.pointer import parse_pointer

# The JSON Pointer of a place in the document, and a sentence about the fault.
Fault: TypeAlias = tuple[str, str]

MAX_TOKENS = 64

REFUSED_PLACE: Tokens = ()
"""The value of a pointer that was refused; an accepted pointer has at least one token.
"""


class MalformedStepError(ValueError):
    """The document of a step is malformed; ``faults`` lists all faults."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(
            "; ".join(f"{message} - at {path or '/'}" for path, message in faults)
        )
        self.faults = faults


REQUIRED: Any = object()


class StepFields:
    """A reader of the fields of one step's document, which collects all faults."""

    def __init__(self, kind: str, document: Any) -> None:
        self._kind = kind
        self._faults: list[Fault] = []
        self._read: set[str] = set()
        self._document: dict[str, Any] = {}
        if not isinstance(document, dict):
            self.refuse(
                "", "must be an object, or a JSON Pointer where only a place is needed"
            )
            self.finish()
        self._document = document

    def refuse(self, name: str, message: str) -> None:
        """Record that the field *name* is wrong; an empty name means the whole step."""
        path = f"/{self._kind}"
        if name:
            path += f"/{name}"
        self._faults.append((path, message))

    def has(self, name: str) -> bool:
        """Return whether the document has the field *name*."""
        return name in self._document

    def take(
        self,
        name: str,
        kind: type | tuple[type, ...],
        expected: str,
        default: Any = REQUIRED,
    ) -> Any:
        """Return the field *name*, which must be of the type *kind*; ``None`` if it is
        refused. *expected* describes a valid value for the message.
        """
        self._read.add(name)
        value = self._document.get(name, default)
        if value is default and default is not REQUIRED:
            return value
        if value is REQUIRED:
            self.refuse("", f"needs {name!r}: {expected}")
            return None
        is_of_kind = isinstance(value, kind)
        # In Python a boolean is a number too.
        if isinstance(value, bool) and kind not in (bool, object):
            is_of_kind = False
        if not is_of_kind:
            self.refuse(name, f"must be {expected}")
            return None
        return value

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        """Return the field *name*, which must be one of *words*."""
        expected = f"one of {', '.join(words)}"
        word = self.take(name, str, expected)
        if word is not None and word not in words:
            self.refuse(name, f"must be {expected}")
        return str(word)

    def place(self, name: str, *, member: bool) -> Tokens:
        """Return the tokens of the pointer *name*, or `REFUSED_PLACE`.

        With *member*, it must name a member of an object, which can be added or
        removed.
        """
        pointer = self.take(name, str, "a JSON Pointer, such as '/topics'")
        if pointer is None:
            return REFUSED_PLACE
        try:
            tokens = parse_pointer(pointer)
        except ValueError as error:
            self.refuse(name, str(error))
            return REFUSED_PLACE
        if not tokens:
            self.refuse(
                name,
                "must lead to a parameter; the arguments as a whole stay an object",
            )
            return REFUSED_PLACE
        if len(tokens) > MAX_TOKENS:
            self.refuse(
                name, f"leads {len(tokens)} levels down; {MAX_TOKENS} are allowed"
            )
            return REFUSED_PLACE
        if member and tokens[-1] == "*":
            self.refuse(
                name,
                "must name a member; only places inside an array's items can change, "
                "not its items",
            )
        return tokens

    def same_array(self, *places: Tokens) -> None:
        """Require that *places* are inside the same items of arrays."""
        shared = {common_prefix(place) for place in places}
        if len(shared) > 1:
            self.refuse("", "its places must be the same up to their last '*'")

    def beside(self, one: Tokens, other: Tokens) -> None:
        """Require that *one* and *other* are different members of one object."""
        if one[:-1] != other[:-1]:
            self.refuse(
                "", "its places must be members of one object; use move for others"
            )
        self.different(one, other)

    def different(self, left: Tokens, right: Tokens) -> None:
        """Require that neither of *left* and *right* contains the other."""
        if REFUSED_PLACE in (left, right):
            return
        shorter = min(len(left), len(right))
        if left[:shorter] == right[:shorter]:
            self.refuse(
                "", "its places must not be the same, and neither may contain the other"
            )

    def finish(self) -> None:
        """Refuse the fields that were not read.

        Raises:
            MalformedStepError: the document has a fault.
        """
        known = ", ".join(sorted(self._read))
        for name in self._document:
            if name not in self._read:
                self.refuse(str(name), f"is unknown here; known are {known}")
        if self._faults:
            raise MalformedStepError(self._faults)
