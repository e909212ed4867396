"""The document of one step of a migration, read field by field: all that is wrong with
it is collected.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from skillruntime.contract.migration.locations import Tokens, common_prefix
from skillruntime.contract.schemas.pointer import parse_pointer

# Where in the document, as a JSON Pointer, and a sentence.
Fault: TypeAlias = tuple[str, str]

MAX_TOKENS = 64


class MalformedStepError(ValueError):
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(
            "; ".join(f"{message} - at {path or '/'}" for path, message in faults)
        )
        self.faults = faults


REQUIRED: Any = object()


class StepFields:
    """The fields of one step's document, read one by one; all that is wrong with them
    is collected.
    """

    def __init__(self, kind: str, document: Any) -> None:
        self._kind, self._faults, self._read = kind, list[Fault](), set[str]()
        self._document = document if isinstance(document, dict) else {}
        if not isinstance(document, dict):
            self.refuse(
                "", "must be an object, or a JSON Pointer where only a place is needed"
            )
            self.finish()

    def refuse(self, name: str, message: str) -> None:
        self._faults.append((f"/{self._kind}" + (f"/{name}" if name else ""), message))

    def has(self, name: str) -> bool:
        return name in self._document

    def take(
        self,
        name: str,
        kind: type | tuple[type, ...],
        what: str,
        default: Any = REQUIRED,
    ) -> Any:
        self._read.add(name)
        value = self._document.get(name, default)
        if value is default and default is not REQUIRED:
            return value
        if value is REQUIRED:
            self.refuse("", f"needs {name!r}: {what}")
            return None
        if not isinstance(value, kind) or (
            isinstance(value, bool) and kind is not bool and kind is not object
        ):
            self.refuse(name, f"must be {what}")
            return None
        return value

    def one_of(self, name: str, words: tuple[str, ...]) -> str:
        what = f"one of {', '.join(words)}"
        word = self.take(name, str, what)
        if word is not None and word not in words:
            self.refuse(name, f"must be {what}")
        return str(word)

    def place(self, name: str, *, member: bool) -> Tokens:
        """Return the tokens of a pointer; *member*: it must name a member of an object,
        to add or remove.
        """
        return self._tokens(
            name,
            self.take(name, str, "a JSON Pointer, such as '/topics'"),
            member=member,
        )

    def _tokens(self, name: str, pointer: str | None, *, member: bool) -> Tokens:
        if pointer is None:
            return ("",)
        try:
            tokens = parse_pointer(pointer)
        except ValueError as error:
            self.refuse(name, str(error))
            return ("",)
        if not tokens:
            self.refuse(
                name,
                "must lead to a parameter; the arguments as a whole stay an object",
            )
            return ("",)
        if len(tokens) > MAX_TOKENS:
            self.refuse(
                name, f"leads {len(tokens)} levels down; {MAX_TOKENS} are allowed"
            )
            return ("",)
        if member and tokens[-1] == "*":
            self.refuse(
                name,
                "must name a member; only places inside an array's items can change, "
                "not its items",
            )
        return tokens

    def same_array(self, *places: Tokens) -> None:
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
        if ("",) in (left, right):  # a pointer that was refused already
            return
        shorter = min(len(left), len(right))
        if left[:shorter] == right[:shorter]:
            self.refuse(
                "", "its places must not be the same, and neither may contain the other"
            )

    def finish(self) -> None:
        for name in self._document:
            if name not in self._read:
                self.refuse(
                    str(name),
                    f"is unknown here; known are {', '.join(sorted(self._read))}",
                )
        if self._faults:
            raise MalformedStepError(self._faults)
