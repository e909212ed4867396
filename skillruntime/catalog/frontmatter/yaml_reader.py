"""Read YAML. Only this module uses the YAML library.

`read_yaml` returns mappings, lists and strings, with the positions of keys. A scalar
keeps its text: ``1.10`` stays ``"1.10"``, and an invalid date does not raise. Tags are
ignored, so no object is ever constructed. `load_yaml` returns the types of JSON.

Law: any text results in a value or a `YamlFault`. The parser yields one event at a time
and is stopped at the first exceeded limit: a document nested 3,000 levels deep, or an
alias bomb, costs no more than a normal document.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

__all__ = [
    "MAX_DEPTH",
    "MAX_NODES",
    "Mark",
    "YamlDocument",
    "YamlFault",
    "load_yaml",
    "read_yaml",
]

MAX_DEPTH = 32
"""The maximum nesting depth; real frontmatters have at most eight levels."""

MAX_NODES = 20_000
"""The maximum number of scalars and collections in one document, with aliases
expanded.
"""

_LONGEST_INTEGER = 4_300  # characters; Python converts at most this many digits

Mark = tuple[int, int]
"""Line and column, both starting at 1."""


# Not called an error, because the reader of frontmatter turns it into a Diagnostic.
class YamlFault(ValueError):  # noqa: N818
    """The text is not valid YAML, or exceeds a limit; ``line`` and ``column`` start at
    1.
    """

    def __init__(
        self, message: str, line: int | None = None, column: int | None = None
    ) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """One document: its ``value``, the position of each key, duplicate keys, and
    unusual syntax.

    ``keys`` and ``values`` map paths to positions: ``("metadata", "version")``.
    ``plain`` are the paths of unquoted scalars. ``oddities`` are ``(kind, line,
    column)``; the kind is ``anchor``, ``tag`` or ``flow``.
    """

    value: Any
    keys: dict[tuple[str, ...], Mark] = field(default_factory=dict)
    values: dict[tuple[str, ...], Mark] = field(default_factory=dict)
    plain: set[tuple[str, ...]] = field(default_factory=set)
    duplicates: list[tuple[str, int, int]] = field(default_factory=list)
    oddities: list[tuple[str, int, int]] = field(default_factory=list)


def read_yaml(
    text: str, *, max_depth: int = MAX_DEPTH, max_nodes: int = MAX_NODES
) -> YamlDocument:
    """Return the only document of *text*; the value of an empty document is ``None``.

    >>> read_yaml("name: 2024-02-31\\nmetadata: {version: 1.10}").value
    {'name': '2024-02-31', 'metadata': {'version': '1.10'}}

    Raises:
        YamlFault: it is not valid YAML, nests deeper than *max_depth*, or has more than
            *max_nodes* nodes or a second document.
    """
    composer = _Composer(max_depth, max_nodes)
    with _faults():
        loader = _loader()(text)
        try:
            composer.take_all(loader.get_event)
        finally:
            loader.dispose()
    return composer.document


def load_yaml(text: str, *, max_depth: int = 200) -> Any:
    """Return the only document of *text* with the types of JSON: a date, or a number as
    a key, becomes a string.

    >>> load_yaml("version: 1.10\\nreleased: 2024-01-31")
    {'version': 1.1, 'released': '2024-01-31'}

    Raises:
        YamlFault: `read_yaml` refuses the text, a value does not fit its tag, or JSON
            cannot represent a value (NaN, a list as a key).
    """
    import json  # importing json takes as long as reading a hundred skills

    import yaml

    # Check the limits first, because PyYAML has none.
    read_yaml(text, max_depth=max_depth)
    with _faults():
        value = yaml.load(text, Loader=_loader())
    with _faults():
        try:
            return json.loads(json.dumps(value, default=str, allow_nan=False))
        except TypeError:  # only a key can have another type now: a date, a list
            raise YamlFault("a key is not a text; write it in quotes") from None


@contextmanager
def _faults() -> Iterator[None]:
    """Turn every exception of the YAML library into a `YamlFault`.

    PyYAML's constructors raise unrelated exceptions: KeyError for ``!!bool x``,
    AttributeError for ``!!timestamp x``, IndexError for ``!!int ""``.
    """
    try:
        yield
    except (YamlFault, MemoryError):
        raise
    except Exception as error:
        raise _fault_of(error) from None


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader class, in C if available, with a limit on
    integers.
    """
    # Importing YAML takes as long as starting Python, and simple frontmatter does not
    # need it.
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]  # chosen at run time
        def construct_yaml_int(self, node: Any) -> Any:
            # In YAML 1.1, 1:00:00 is a number of seconds; PyYAML takes minutes for one
            # with 300,000 parts. Python also refuses decimals with more digits.
            if len(node.value) > _LONGEST_INTEGER:
                raise YamlFault(
                    f"an integer has more than {_LONGEST_INTEGER} characters",
                    *_mark(node),
                )
            return super().construct_yaml_int(node)

    Loader.add_constructor("tag:yaml.org,2002:int", Loader.construct_yaml_int)
    return Loader


@dataclass(slots=True)
class _Open:
    """A collection that is not yet complete."""

    container: dict[str, Any] | list[Any]
    anchor: str | None
    path: tuple[str, ...]
    first_node: int
    key: str | None = None


class _Composer:
    """Builds the value from events, with a stack instead of recursion."""

    def __init__(self, max_depth: int, max_nodes: int) -> None:
        self.max_depth = max_depth
        self._max_nodes = max_nodes
        self.document = YamlDocument(None)
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._nodes = 0
        self._has_started = False

    def take_all(self, next_event: Callable[[], Any]) -> None:
        """Process the events of a document, up to ``None``."""
        # Compare the class by name, because its library is imported late.
        take = {
            "ScalarEvent": self._scalar,
            "MappingStartEvent": self._start_mapping,
            "SequenceStartEvent": self._start_list,
            "MappingEndEvent": self._finish,
            "SequenceEndEvent": self._finish,
            "AliasEvent": self._alias,
            "DocumentStartEvent": self._start_document,
        }
        while True:
            event = next_event()
            if event is None:
                return
            process = take.get(type(event).__name__)
            if process is not None:
                process(event)

    def _scalar(self, event: Any) -> None:
        if event.anchor or event.tag:
            self._note_oddities(event)
        self._count(1, event)
        if event.anchor:
            self._anchors[event.anchor] = (event.value, 1)
        self._place(event.value, event, is_plain=not event.style)

    def _start_mapping(self, event: Any) -> None:
        self._start({}, event)

    def _start_list(self, event: Any) -> None:
        self._start([], event)

    def _start_document(self, event: Any) -> None:
        # Otherwise the text below, perhaps the remaining fields, would be silently
        # ignored.
        if self._has_started:
            raise _fault("a second document begins here", event)
        self._has_started = True

    def _start(self, container: dict[str, Any] | list[Any], event: Any) -> None:
        self._note_oddities(event)
        self._count(1, event)
        # libyaml and PyYAML recurse in later steps: stopping at the event keeps deep
        # documents cheap.
        if len(self._open) >= self.max_depth:
            raise _fault(f"nested deeper than {self.max_depth} levels", event)
        path = self._path()
        self._place(container, event)
        self._open.append(_Open(container, event.anchor, path, self._nodes))

    def _finish(self, event: Any) -> None:
        closed = self._open.pop()
        if closed.anchor:
            nodes = self._nodes - closed.first_node + 1
            self._anchors[closed.anchor] = (closed.container, nodes)

    def _alias(self, event: Any) -> None:
        # An alias inside its own anchor would make the value infinite.
        if event.anchor not in self._anchors:
            raise _fault(
                f"the alias *{event.anchor} refers to an anchor that is not complete "
                "at this point",
                event,
            )
        value, nodes = self._anchors[event.anchor]
        # Count the expanded size, so that nine levels of nine aliases cannot become 400
        # million nodes.
        self._count(nodes, event)
        self._place(value, event)

    def _path(self) -> tuple[str, ...]:
        if not self._open:
            return ()
        parent = self._open[-1]
        if parent.key is None:
            return (*parent.path, "-")
        return (*parent.path, parent.key)

    def _place(self, value: Any, event: Any, *, is_plain: bool = False) -> None:
        if not self._open:
            self.document = YamlDocument(value, oddities=self.document.oddities)
            return
        parent = self._open[-1]
        if isinstance(parent.container, list):
            parent.container.append(value)
        elif parent.key is None:
            if not isinstance(value, str):
                raise _fault("a mapping or list cannot be a key", event)
            parent.key = value
            if value in parent.container:
                self.document.duplicates.append((value, *_mark(event)))
            if len(parent.path) < 2:
                self.document.keys[(*parent.path, value)] = _mark(event)
        else:
            # Positions are only needed for fields and for entries of metadata.
            if len(parent.path) < 2:
                path = (*parent.path, parent.key)
                self.document.values[path] = _mark(event)
                if is_plain:
                    self.document.plain.add(path)
                else:
                    self.document.plain.discard(path)
            parent.container[parent.key] = value
            parent.key = None

    def _note_oddities(self, event: Any) -> None:
        # strictyaml, which the reference validator uses, rejects all three.
        for attribute in ("anchor", "tag", "flow_style"):
            if getattr(event, attribute, None):
                kind = attribute.removesuffix("_style")
                self.document.oddities.append((kind, *_mark(event)))

    def _count(self, nodes: int, event: Any) -> None:
        self._nodes += nodes
        if self._nodes > self._max_nodes:
            raise _fault(
                f"more than {self._max_nodes} nodes after expanding aliases", event
            )


def _mark(event: Any) -> Mark:
    return event.start_mark.line + 1, event.start_mark.column + 1


def _fault_of(error: Exception) -> YamlFault:
    """Return the fault for an exception of the YAML library, with the position if the
    exception has one.
    """
    import yaml

    if not isinstance(error, yaml.MarkedYAMLError):
        if isinstance(error, yaml.YAMLError | ValueError | RecursionError):
            return YamlFault(_one_line(error))
        # The text of a KeyError or IndexError does not help a reader.
        return YamlFault("a value does not fit its tag or its type")
    # The context mark is the start of the surrounding structure, which is better than
    # no position.
    mark = error.problem_mark or error.context_mark
    message = error.problem or error.context or "not YAML"
    if not mark:
        return YamlFault(message)
    return YamlFault(message, mark.line + 1, mark.column + 1)


def _fault(message: str, event: Any) -> YamlFault:
    return YamlFault(message, *_mark(event))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
