"""Reads YAML as mappings, lists and strings: bounded, without types, and with the
position of every key.

A scalar keeps its text: ``1.10`` stays ``"1.10"``, and an invalid date does not raise.
Tags are ignored, so no object is ever constructed. The parser yields one event at a
time and is stopped at the first exceeded limit: a document nested 3,000 levels deep, or
an alias bomb, costs no more than a normal one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["MAX_DEPTH", "MAX_NODES", "Mark", "YamlDocument", "YamlFault", "read_yaml"]

MAX_DEPTH = 32
"""Levels of nesting; real frontmatters have at most eight."""

MAX_NODES = 20_000
"""Scalars and collections in one document, after expanding aliases."""

Mark = tuple[int, int]
"""Line and column, both from 1."""


# The reader of frontmatter turns it into a Diagnostic, so it is not called an error.
class YamlFault(ValueError):  # noqa: N818
    """The text is not valid YAML, or exceeds a limit; ``line`` and ``column`` count
    from 1.
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
    """Return the only document of *text*; the value of an empty one is ``None``.

    >>> read_yaml("name: 2024-02-31\\nmetadata: {version: 1.10}").value
    {'name': '2024-02-31', 'metadata': {'version': '1.10'}}

    Raises:
        YamlFault: it is not valid YAML, nests deeper than *max_depth*, or has more than
            *max_nodes* nodes or a second document.
    """
    # Importing it takes as long as starting Python, and simple frontmatter does not
    # need it.
    import yaml

    composer = _Composer(max_depth, max_nodes)
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        for event in yaml.parse(text, Loader=loader):
            composer.take(event)
    except yaml.MarkedYAMLError as error:
        raise _fault_of(error) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        if isinstance(error, YamlFault):
            raise
        raise YamlFault(_one_line(error)) from None
    return composer.document


@dataclass(slots=True)
class _Open:
    """A collection that is not complete yet."""

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

    def take(self, event: Any) -> None:
        """Process one event."""
        match type(event).__name__:
            case "ScalarEvent":
                self._note_oddities(event)
                self._count(1, event)
                if event.anchor:
                    self._anchors[event.anchor] = (event.value, 1)
                self._place(event.value, event, is_plain=not event.style)
            case "MappingStartEvent":
                self._start({}, event)
            case "SequenceStartEvent":
                self._start([], event)
            case "MappingEndEvent" | "SequenceEndEvent":
                self._finish()
            case "AliasEvent":
                self._alias(event)
            case "DocumentStartEvent":
                # The text below would be ignored without notice: the rest of the
                # fields, perhaps.
                if self._has_started:
                    raise _fault("a second document begins here", event)
                self._has_started = True

    def _start(self, container: dict[str, Any] | list[Any], event: Any) -> None:
        self._note_oddities(event)
        self._count(1, event)
        # libyaml and PyYAML recurse elsewhere: stopping at the event keeps deep
        # documents cheap.
        if len(self._open) >= self.max_depth:
            raise _fault(f"nested deeper than {self.max_depth} levels", event)
        path = self._path()
        self._place(container, event)
        self._open.append(_Open(container, event.anchor, path, self._nodes))

    def _finish(self) -> None:
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
        # Expanded size, so that nine levels of nine aliases cannot become 400 million
        # nodes.
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
        mark = _mark(event)
        if isinstance(parent.container, list):
            parent.container.append(value)
        elif parent.key is None:
            if not isinstance(value, str):
                raise _fault("a mapping or list cannot be a key", event)
            parent.key = value
            if value in parent.container:
                self.document.duplicates.append((value, *mark))
            if len(parent.path) < 2:
                self.document.keys[(*parent.path, value)] = mark
        else:
            path = (*parent.path, parent.key)
            # Positions are only needed for fields and for entries of metadata.
            if len(path) <= 2:
                self.document.values[path] = mark
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


def _fault_of(error: Any) -> YamlFault:
    # The context mark is the start of the surrounding structure: better than no
    # position.
    mark = error.problem_mark or error.context_mark
    message = error.problem or error.context or "not YAML"
    if not mark:
        return YamlFault(message)
    return YamlFault(message, mark.line + 1, mark.column + 1)


def _fault(message: str, event: Any) -> YamlFault:
    return YamlFault(message, *_mark(event))


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
