"""Refuse a schema that could cost too much to evaluate, before an engine ever sees it.

An engine holds the interpreter while it works, so no deadline can stop it: an untrusted
schema is measured first. Its size and depth are bounded, and so is the number of
subschemas once every reference is followed. A value's depth is not bounded here:
jsonschema-rs caches its result for each pair of a recursive subschema and a part of the
value, so that validation takes time in proportion to the value, however the schema
refers to itself. (Measured with 0.60.3: 28 kinds of recursion, each with two references
back for the same child, take under 0.1 ms at 98 levels.)
`skillruntime.contract.schemas.violations` lists violations with yes-or-no questions
only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from skillruntime.contract.schemas.plain_json import ANY_LEVELS, find_fault
from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA, Location, format_pointer
from skillruntime.contract.schemas.references import References, children

MAX_CHARACTERS = 1_000_000
MAX_NODES = 50_000
MAX_DEPTH = 100
MAX_EVALUATIONS = 100_000
# The stack that jsonschema-rs 0.60.3 uses for each level of a value, and for each
# subschema that is open above it (about 350 and 70 bytes, as measured).
LEVEL_BYTES = 400
STEP_BYTES = 80
# Half of a thread's 8 MB on Linux. The engine does not check its stack: an overflow
# would end the process.
STACK_BYTES = 4_000_000

_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


class SchemaTooCostlyError(ValueError):
    """The schema exceeds a bound; the message says which bound, and where."""


class Bounds(NamedTuple):
    """The result of measuring a schema: its references and its JSON text.

    ``levels`` is the allowed depth of a value: the engine calls itself for each level
    of a recursive schema, and must not run out of stack.
    """

    references: References
    text: str
    levels: int = ANY_LEVELS


def measure(
    document: Mapping[str, Any] | bool, *, dialect: str = "", base: str = ""
) -> Bounds:
    """Return the bounds of the schema *document*, following its references as
    `References` does.

    Raises:
        SchemaTooCostlyError: the schema is too large or too deep, refers to itself
            without end, or branches exponentially.
    """
    fault = find_fault(document, MAX_DEPTH)
    if fault is not None:
        if fault.startswith("nested"):
            raise SchemaTooCostlyError(f"nested more than {MAX_DEPTH} levels deep")
        raise SchemaTooCostlyError(f"it holds {fault}")
    text = json.dumps(document, ensure_ascii=False)
    nodes = text.count(",") + text.count(":")
    if len(text) > MAX_CHARACTERS or nodes > MAX_NODES:
        raise SchemaTooCostlyError(
            f"the schema is larger than {MAX_NODES} nodes or {MAX_CHARACTERS} "
            "characters"
        )
    references = References(document, dialect=dialect, base=base)
    # Without references, each subschema is evaluated only once for a value.
    if not any(f'"{keyword}"' in text for keyword in _REFERENCES):
        return Bounds(references, text)
    expansion = _Expansion(references)
    expansion.count(WHOLE_SCHEMA, 0)
    if not expansion.is_recursive:
        return Bounds(references, text)
    bytes_of_level = LEVEL_BYTES + STEP_BYTES * expansion.longest
    return Bounds(references, text, levels=STACK_BYTES // bytes_of_level)


class _Expansion:
    """The schema with every reference followed, until a reference leads back to a
    subschema that is still open.
    """

    def __init__(self, references: References) -> None:
        self.references = references
        self.is_recursive = False
        self.longest = 0
        self._known: dict[Location, int] = {}
        self._open: dict[Location, int] = {}

    def count(self, location: Location, depth: int) -> int:
        """Return the number of subschemas below *location*, which judges a part *depth*
        levels down.
        """
        if location in self._open:
            # The same subschema judges the same part of the value again, so the
            # recursion would never end.
            if self._open[location] == depth:
                raise SchemaTooCostlyError(
                    f"the schema refers to itself without end at {_where(location)}"
                )
            self.is_recursive = True
            return 1
        if location in self._known:
            return self._known[location]
        if len(self._open) > 4 * MAX_DEPTH:
            raise SchemaTooCostlyError(
                f"a chain of references is longer than {4 * MAX_DEPTH}"
            )
        self._open[location] = depth
        self.longest = max(self.longest, len(self._open))
        total = 1
        for target in self.references.targets(location):
            total += self.count(target, depth)
        for child in children(self.references.schema_at(location), location):
            if child.kind == "same":
                total += self.count(child.location, depth)
            elif child.kind != "none":
                total += self.count(child.location, depth + 1)
            if total > MAX_EVALUATIONS:
                raise SchemaTooCostlyError(
                    f"the schema branches into more than {MAX_EVALUATIONS} subschemas "
                    f"at {_where(location)}"
                )
        del self._open[location]
        self._known[location] = total
        return total


def _where(location: Location) -> str:
    return format_pointer(location) or "the root"
