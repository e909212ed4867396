"""The steps of a migration, as data: each changes arguments of an old shape a little towards the new one.

A step is a JSON object with one key, its kind::

    {"rename": {"from": "/count", "to": "/limit"}}          another name in the same object
    {"move": {"from": "/options/lang", "to": "/lang"}}      another place; missing objects on the way are made
    {"wrap": "/topics"}                                     a value becomes an array of one; an array is left alone
    {"unwrap": "/topics"}                                   an array of one becomes its item
    {"set_default": {"at": "/format", "value": "brief"}}    where none was given ("new": true: the old shape had none)
    {"drop": "/legacy"}                                     the new shape has no such thing
    {"map": {"at": "/level", "values": {"low": "minimal"}}} other values ("values": [[1, "one"]] if not strings)
    {"convert": {"at": "/count", "from": "string", "to": "integer"}}    another type
    {"convert": {"at": "/hours", "factor": 24}}             another unit ("divisor" to divide); exact arithmetic
    {"split": {"at": "/topics", "separator": ","}}          a text becomes an array; "strip": true trims the parts
    {"split": {"from": "/range", "to": ["/start", "/end"], "separator": ".."}}
    {"join": {"at": "/topics", "separator": ","}}           and back
    {"join": {"from": ["/start", "/end"], "to": "/range", "separator": ".."}}
    {"nest": {"from": ["/lang", "/style"], "to": "/options"}}    members move into a new object beside them
    {"flatten": "/options"}                                 an object's members take its place

Places are JSON Pointers (RFC 6901). A token ``*`` stands for each item where an array stands, and is an ordinary key
elsewhere; the places of one step share everything up to their last ``*``. Nothing at the source is nothing to do: so a
step leaves alone what is in the new shape already. Something at the target is an error: no step overwrites.
A step that loses nothing has an inverse.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from skillruntime.contract.pointer import Path, format_pointer, parse_pointer

__all__ = ["Step", "StepRefused", "copy_json", "parse_step", "parse_steps"]

Fault: TypeAlias = tuple[str, str]
Change: TypeAlias = Callable[[dict[str, Any]], None]
Tokens: TypeAlias = tuple[str, ...]

MAX_STEPS = 1000
MAX_TOKENS = 64


class StepRefused(Exception):  # noqa: N818 - it never leaves a migration; named for what happened
    """A step cannot be taken on this value: where, and why."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, its document as it was written, and the document of its inverse if it loses nothing."""

    kind: str
    document: Mapping[str, Any]
    inverse: Mapping[str, Any] | None
    change: Change

    def __repr__(self) -> str:
        return f"Step({self.document!r})"


def parse_steps(documents: Any, where: str) -> tuple[tuple[Step, ...], list[Fault]]:
    """Return the steps that *documents* describe, and all that is wrong with them as (JSON Pointer, sentence)."""
    if not isinstance(documents, list):
        return (), [(where, "must be an array of steps")]
    if len(documents) > MAX_STEPS:
        return (), [(where, f"has {len(documents)} steps; {MAX_STEPS} are allowed")]
    steps, faults = [], []
    for index, document in enumerate(documents):
        try:
            steps.append(parse_step(document))
        except _MalformedStep as error:
            faults += [(f"{where}/{index}{path}", message) for path, message in error.faults]
    return tuple(steps), faults


def parse_step(document: Any) -> Step:
    """Return the step that *document* describes.

    >>> step = parse_step({"rename": {"from": "/count", "to": "/limit"}})
    >>> arguments = {"count": 3}
    >>> step.change(arguments); arguments
    {'limit': 3}
    >>> step.inverse
    {'rename': {'from': '/limit', 'to': '/count'}}

    Raises:
        ValueError: it describes none; ``faults`` lists why.
    """
    known = ", ".join(_KINDS)
    if not isinstance(document, dict) or len(document) != 1:
        raise _MalformedStep([("", f"a step is an object with one key: {known}")])
    ((kind, written),) = document.items()
    if kind not in _KINDS:
        raise _MalformedStep([("", f"{str(kind)[:40]!r} is no step; send one of {known}")])
    build, simple = _KINDS[kind]
    fields = _Fields(kind, {"at": written} if simple and isinstance(written, str) else written)
    change, inverse = build(fields)
    fields.finish()
    return Step(kind, document, inverse, change)


def copy_json(value: Any) -> Any:
    """Return a copy of *value* that shares no array or object with it."""
    if isinstance(value, dict):
        return {key: copy_json(child) for key, child in value.items()}
    if isinstance(value, list):
        return [copy_json(child) for child in value]
    return value


class _MalformedStep(ValueError):  # noqa: N818 - read as its base, with the list beside it
    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(f"{message} - at {path or '/'}" for path, message in faults))
        self.faults = faults


_REQUIRED: Any = object()


class _Fields:
    """The fields of one step's document, read one by one; all that is wrong with them is collected."""

    def __init__(self, kind: str, document: Any) -> None:
        self._kind, self._faults, self._read = kind, list[Fault](), set[str]()
        self._document = document if isinstance(document, dict) else {}
        if not isinstance(document, dict):
            self._fault("", "must be an object, or a JSON Pointer where only a place is needed")

    def _fault(self, name: str, message: str) -> None:
        self._faults.append((f"/{self._kind}" + (f"/{name}" if name else ""), message))

    def has(self, name: str) -> bool:
        return name in self._document

    def take(self, name: str, kind: type | tuple[type, ...], what: str, default: Any = _REQUIRED) -> Any:
        self._read.add(name)
        value = self._document.get(name, default)
        if value is default and default is not _REQUIRED:
            return value
        if value is _REQUIRED:
            self._fault("", f"needs {name!r}: {what}")
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool and kind is not object):
            self._fault(name, f"must be {what}")
            return None
        return value

    def place(self, name: str, *, member: bool) -> Tokens:
        """Return the tokens of a pointer; *member*: it must name a member of an object, to add or remove."""
        return self._tokens(name, self.take(name, str, "a JSON Pointer, such as '/topics'"), member=member)

    def places(self, name: str) -> list[Tokens]:
        pointers = self.take(name, list, "an array of JSON Pointers")
        if pointers is None:
            return []
        if not pointers or not all(isinstance(pointer, str) for pointer in pointers):
            self._fault(name, "must be an array of JSON Pointers, at least one")
            return []
        found = [self._tokens(f"{name}/{index}", pointer, member=True) for index, pointer in enumerate(pointers)]
        if len(set(found)) < len(found):
            self._fault(name, "names a place twice")
        return found

    def _tokens(self, name: str, pointer: str | None, *, member: bool) -> Tokens:
        if pointer is None:
            return ("",)
        try:
            tokens = parse_pointer(pointer)
        except ValueError as error:
            self._fault(name, str(error))
            return ("",)
        if not tokens:
            self._fault(name, "must lead to a parameter; the arguments as a whole stay an object")
            return ("",)
        if len(tokens) > MAX_TOKENS:
            self._fault(name, f"leads {len(tokens)} levels down; {MAX_TOKENS} are allowed")
            return ("",)
        if member and tokens[-1] == "*":
            self._fault(name, "must name a member; only places inside an array's items can change, not its items")
        return tokens

    def same_array(self, *places: Tokens) -> None:
        shared = {_common(place) for place in places}
        if len(shared) > 1:
            self._fault("", "its places must be the same up to their last '*'")

    def siblings(self, *places: Tokens) -> None:
        if len({place[:-1] for place in places}) > 1:
            self._fault("", "its places must be members of one object; use move for others")

    def different(self, left: Tokens, right: Tokens) -> None:
        shorter = min(len(left), len(right))
        if left[:shorter] == right[:shorter]:
            self._fault("", "leads a place into itself")

    def finish(self) -> None:
        for name in self._document:
            if name not in self._read:
                known = ", ".join(sorted(self._read))
                self._fault(str(name), f"is unknown here; known are {known}")
        if self._faults:
            raise _MalformedStep(self._faults)


def _common(tokens: Tokens) -> Tokens:
    last = max((index for index, token in enumerate(tokens) if token == "*"), default=-1)
    return tokens[: last + 1]


# Places in a value ------------------------------------------------------------------------------------------------


def _holders(value: Any, tokens: Tokens, path: Path = ()) -> Iterator[tuple[Any, Path]]:
    """Yield every container in which the last of *tokens* may stand, and its path; where there is none, nothing."""
    if len(tokens) == 1:
        if isinstance(value, dict | list):
            yield value, path
        return
    yield from (
        (found, where)
        for child, at in _children(value, tokens[0], path)
        for found, where in _holders(child, tokens[1:], at)
    )


def _children(value: Any, token: str, path: Path) -> Iterator[tuple[Any, Path]]:
    if isinstance(value, list):
        for index in _indexes(value, token):
            yield value[index], (*path, index)
    elif isinstance(value, dict) and token in value:
        yield value[token], (*path, token)


def _indexes(items: list[Any], token: str) -> range:
    if token == "*":
        return range(len(items))
    if token.isdecimal() and token.isascii() and int(token[:9]) < len(items) and len(token) < 10:
        return range(int(token), int(token) + 1)
    return range(0)


def _each(tokens: Tokens, new: Callable[[Any, str], Any]) -> Change:
    """Return the change that replaces every value at *tokens* by ``new(value, pointer)``."""

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in _holders(arguments, tokens):
            keys: Any = _indexes(holder, tokens[-1]) if isinstance(holder, list) else (tokens[-1],)
            for key in keys:
                if isinstance(holder, list) or key in holder:
                    holder[key] = new(holder[key], format_pointer((*path, key)))

    return change


def _objects(tokens: Tokens) -> Callable[[dict[str, Any]], Iterator[tuple[dict[str, Any], Path]]]:
    """Return what yields every object in which the last of *tokens* is or could be a member."""

    def found(arguments: dict[str, Any]) -> Iterator[tuple[dict[str, Any], Path]]:
        for holder, path in _holders(arguments, tokens):
            if isinstance(holder, dict):
                yield holder, path
            elif _indexes(holder, tokens[-1]):
                raise StepRefused(format_pointer((*path, tokens[-1])), "an array's item cannot be added or removed")

    return found


def _put(holder: dict[str, Any], key: str, value: Any, path: Path) -> None:
    if key in holder:
        where = format_pointer((*path, key))
        raise StepRefused(where, f"{where} is there already, and would be overwritten")
    holder[key] = value


def _pointer(tokens: Tokens) -> str:
    return format_pointer(tokens)


# The kinds --------------------------------------------------------------------------------------------------------

Built: TypeAlias = tuple[Change, dict[str, Any] | None]


def _rename(fields: _Fields) -> Built:
    source, target = fields.place("from", member=True), fields.place("to", member=True)
    fields.siblings(source, target)
    fields.different(source, target)
    objects = _objects(source)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            if source[-1] in holder:
                _put(holder, target[-1], holder[source[-1]], path)
                del holder[source[-1]]

    return change, {"rename": {"from": _pointer(target), "to": _pointer(source)}}


def _move(fields: _Fields) -> Built:
    source, target = fields.place("from", member=True), fields.place("to", member=True)
    fields.same_array(source, target)
    fields.different(source, target)
    shared = _common(source)
    lifts = len(target) == len(shared) + 1  # no object has to be made, so none is left over on the way back
    take, down = _objects(source[len(shared) :] or ("",)), target[len(shared) :] or ("",)

    def change(arguments: dict[str, Any]) -> None:
        for base, at in _items(arguments, shared):
            for holder, _ in take(base):
                if source[-1] in holder:
                    _put_down(base, down, holder[source[-1]], at)
                    del holder[source[-1]]

    inverse = {"move": {"from": _pointer(target), "to": _pointer(source)}} if lifts else None
    return change, inverse


def _items(arguments: dict[str, Any], shared: Tokens) -> Iterator[tuple[dict[str, Any], Path]]:
    if not shared:
        yield arguments, ()
        return
    for holder, path in _holders(arguments, shared):
        keys: Any = range(len(holder)) if isinstance(holder, list) else [key for key in holder if key == shared[-1]]
        for key in keys:
            if isinstance(holder[key], dict):
                yield holder[key], (*path, key)


def _put_down(holder: dict[str, Any], tokens: Tokens, value: Any, path: Path) -> None:
    for token in tokens[:-1]:
        path = (*path, token)
        holder = holder.setdefault(token, {})
        if not isinstance(holder, dict):
            raise StepRefused(
                format_pointer(path), f"{format_pointer(path)} is no object, so nothing can be put into it"
            )
    _put(holder, tokens[-1], value, path)


def _wrap(fields: _Fields) -> Built:
    place = fields.place("at", member=False)
    return _each(place, lambda value, _: value if isinstance(value, list) else [value]), {"unwrap": _pointer(place)}


def _unwrap(fields: _Fields) -> Built:
    place = fields.place("at", member=False)

    def new(value: Any, where: str) -> Any:
        if isinstance(value, list) and len(value) != 1:
            raise StepRefused(where, f"an array of {len(value)} cannot become one value")
        return value[0] if isinstance(value, list) else value

    return _each(place, new), {"wrap": _pointer(place)}


def _set_default(fields: _Fields) -> Built:
    place = fields.place("at", member=True)
    value = fields.take("value", object, "the default")
    new = fields.take("new", bool, "true or false", False)
    objects = _objects(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects(arguments):
            if place[-1] not in holder:
                holder[place[-1]] = copy_json(value)

    return change, {"drop": _pointer(place)} if new else None


def _drop(fields: _Fields) -> Built:
    place = fields.place("at", member=True)
    objects = _objects(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, _ in objects(arguments):
            holder.pop(place[-1], None)

    return change, None


def _map(fields: _Fields) -> Built:
    place = fields.place("at", member=False)
    written = fields.take("values", (dict, list), "an object of old value -> new value, or an array of such pairs")
    pairs = list(written.items()) if isinstance(written, dict) else written or []
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs) or (
        written is not None and not pairs
    ):
        fields.take("values", (), "an object of old value -> new value, or an array of such pairs; at least one")
        pairs = []
    otherwise = fields.take(
        "otherwise", object, "the new value for all others", _REQUIRED if fields.has("otherwise") else None
    )
    rest = fields.has("otherwise")
    table = {_same_as(old): new for old, new in pairs}
    if len(table) < len(pairs):
        fields.take("values", (), "a table in which no old value stands twice")

    def new(value: Any, _: str) -> Any:
        found = table.get(_same_as(value), _REQUIRED)
        if found is _REQUIRED:
            return copy_json(otherwise) if rest else value
        return copy_json(found)

    news = {_same_as(new) for _, new in pairs}
    exact = not rest and len(news) == len(pairs)
    inverse = {"map": {"at": _pointer(place), "values": [[new, old] for old, new in pairs]}}
    return _each(place, new), inverse if exact else None


def _same_as(value: Any) -> Any:
    """Return what is equal for equal JSON values and for no others: 1 is 1.0 and not true."""
    if isinstance(value, dict):
        return ("object", frozenset((key, _same_as(child)) for key, child in value.items()))
    if isinstance(value, list):
        return ("array", tuple(map(_same_as, value)))
    return (isinstance(value, bool), value)


def _convert(fields: _Fields) -> Built:
    place = fields.place("at", member=False)
    if not fields.has("to"):
        return _convert_unit(fields, place)
    source, target = (fields.take(name, str, f"one of {', '.join(_TYPES)}", None) for name in ("from", "to"))
    for name, kind in (("from", source), ("to", target)):
        if kind is not None and kind not in _TYPES:
            fields.take(name, (), f"one of {', '.join(_TYPES)}")

    def new(value: Any, where: str) -> Any:
        kind = _type_of(value)
        if (
            kind == target
            or (target == "number" and kind == "integer")
            or (source is not None and not _is(kind, source))
        ):
            return value
        function = _CONVERSIONS.get((kind, str(target)))
        converted = function(value) if function else None
        if converted is None:
            raise StepRefused(where, f"{_show(value)} cannot become {_article(str(target))}")
        return converted

    exact = (source, target) in _EXACT
    inverse = {"convert": {"at": _pointer(place), "from": target, "to": source}}
    return _each(place, new), inverse if exact else None


def _convert_unit(fields: _Fields, place: Tokens) -> Built:
    what = "a number other than 0"
    factor = fields.take("factor", (int, float), what, 1)
    divisor = fields.take("divisor", (int, float), what, 1)
    if not fields.has("factor") and not fields.has("divisor"):
        fields.take("to", str, f"one of {', '.join(_TYPES)}; or a 'factor' or 'divisor' for a unit")
    ratio = Fraction(1)
    if factor is not None and divisor is not None:
        if factor != factor or divisor != divisor or factor in _NO_RATIO or divisor in _NO_RATIO:
            fields.take("factor", (), what)
        else:
            ratio = _exact(factor) / _exact(divisor)

    def new(value: Any, where: str) -> Any:
        if _type_of(value) not in ("integer", "number"):
            return value
        try:
            result = _exact(value) * ratio
            return int(result) if result.denominator == 1 else float(result)
        except (OverflowError, ValueError):
            raise StepRefused(where, f"{_show(value)} times {ratio} is no number that JSON can carry") from None

    inverse = {"convert": {"at": _pointer(place), "divisor": ratio.numerator}}
    return _each(place, new), inverse if ratio.denominator == 1 else None


_NO_RATIO = (0, float("inf"), float("-inf"))
_TYPES = ("string", "integer", "number", "boolean")


def _exact(value: float) -> Fraction:
    return Fraction(value) if isinstance(value, int) else Fraction(Decimal(repr(value)))


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "number"
        case str():
            return "string"
        case None:
            return "null"
    return "array" if isinstance(value, list) else "object"


def _is(kind: str, wanted: str) -> bool:
    return kind == wanted or (kind == "integer" and wanted == "number")


def _read_number(text: str) -> int | float | None:
    from json import loads

    try:
        value = loads(text, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None
    return value if _type_of(value) in ("integer", "number") and value not in _NO_RATIO[1:] else None


def _read_integer(text: str) -> int | None:
    value = _read_number(text)
    return int(value) if value is not None and _type_of(value) == "integer" else None


def _write_number(value: float) -> str | None:
    try:
        return str(int(value)) if _type_of(value) == "integer" and abs(value) < 1e15 else str(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        return None


_CONVERSIONS: dict[tuple[str, str], Callable[[Any], Any]] = {
    ("string", "integer"): _read_integer,
    ("string", "number"): _read_number,
    ("string", "boolean"): {"true": True, "false": False}.get,
    ("integer", "string"): _write_number,
    ("number", "string"): _write_number,
    ("boolean", "string"): {True: "true", False: "false"}.get,
    ("boolean", "integer"): int,
    ("boolean", "number"): int,
    ("integer", "boolean"): {0: False, 1: True}.get,
}
_EXACT = {
    ("integer", "string"),
    ("number", "string"),
    ("boolean", "string"),
    ("string", "boolean"),
    ("boolean", "integer"),
    ("integer", "boolean"),
}
"""The conversions that lose nothing: text becomes a number by more than one spelling, so that one does."""


def _split(fields: _Fields) -> Built:
    separator = fields.take("separator", str, "a text of at least one character")
    if separator == "":
        fields.take("separator", (), "a text of at least one character")
    strip = fields.take("strip", bool, "true or false", False)

    def parts(text: str) -> list[str]:
        found = text.split(separator or None)
        return [part.strip() for part in found] if strip else found

    if fields.has("from"):
        return _split_apart(fields, separator, parts, exact=not strip)
    place = fields.place("at", member=False)

    def new(value: Any, _: str) -> Any:
        if not isinstance(value, str):
            return value
        return parts(value) if value.strip() or (value and not strip) else []

    inverse = {"join": {"at": _pointer(place), "separator": separator}}
    return _each(place, new), None if strip else inverse


def _split_apart(fields: _Fields, separator: str, parts: Callable[[str], list[str]], *, exact: bool) -> Built:
    source, targets = fields.place("from", member=True), fields.places("to")
    fields.siblings(source, *targets)
    for target in targets:
        fields.different(source, target)
    objects = _objects(source)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            text = holder.get(source[-1])
            if not isinstance(text, str):
                continue
            found = parts(text)
            if len(found) > len(targets):
                where = format_pointer((*path, source[-1]))
                raise StepRefused(where, f"{_show(text)} has {len(found)} parts; there is room for {len(targets)}")
            del holder[source[-1]]
            for target, part in zip(targets, found, strict=False):
                _put(holder, target[-1], part, path)

    inverse = {"join": {"from": list(map(_pointer, targets)), "to": _pointer(source), "separator": separator}}
    return change, inverse if exact else None


def _join(fields: _Fields) -> Built:
    separator = fields.take("separator", str, "a text of at least one character")
    if separator == "":
        fields.take("separator", (), "a text of at least one character")

    def text(parts: list[Any], where: str) -> str:
        for part in parts:
            if not isinstance(part, str) or (separator and separator in part):
                why = "is no text" if not isinstance(part, str) else f"holds the separator {separator!r}"
                raise StepRefused(where, f"{_show(part)} {why}, so it cannot be joined")
        return (separator or "").join(parts)

    if fields.has("from"):
        return _join_together(fields, separator, text)
    place = fields.place("at", member=False)

    def new(value: Any, where: str) -> Any:
        if not isinstance(value, list):
            return value
        if value == [""]:
            raise StepRefused(where, "an array of one empty text, joined, would say that it is empty")
        return text(value, where)

    return _each(place, new), {"split": {"at": _pointer(place), "separator": separator}}


def _join_together(fields: _Fields, separator: str, text: Callable[[list[Any], str], str]) -> Built:
    sources, target = fields.places("from"), fields.place("to", member=True)
    fields.siblings(target, *sources)
    for source in sources:
        fields.different(source, target)
    objects = _objects(target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            present = [source[-1] in holder for source in sources]
            if not any(present):
                continue
            where = format_pointer((*path, sources[present.index(False) if False in present else 0][-1]))
            if present != sorted(present, reverse=True):
                raise StepRefused(where, f"{where} is missing before one that is there, so they cannot be joined")
            parts = [holder.pop(source[-1]) for source, there in zip(sources, present, strict=True) if there]
            _put(holder, target[-1], text(parts, where), path)

    inverse = {"split": {"from": _pointer(target), "to": list(map(_pointer, sources)), "separator": separator}}
    return change, inverse


def _nest(fields: _Fields) -> Built:
    sources, target = fields.places("from"), fields.place("to", member=True)
    fields.siblings(target, *sources)
    inside = [source[-1] for source in sources]
    objects = _objects(target)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            members = {name: holder[name] for name in inside if name in holder}
            if target[-1] in members and isinstance(members[target[-1]], dict):
                continue  # in the new shape already
            for name in members:
                del holder[name]
            if members:
                _put(holder, target[-1], members, path)

    return change, {"flatten": {"at": _pointer(target), "members": inside}}


def _flatten(fields: _Fields) -> Built:
    place = fields.place("at", member=True)
    names = fields.take("members", list, "an array of member names", None)
    objects = _objects(place)

    def change(arguments: dict[str, Any]) -> None:
        for holder, path in objects(arguments):
            members = holder.get(place[-1])
            if not isinstance(members, dict):
                continue
            where = (*path, place[-1])
            unknown = [name for name in members if names is not None and name not in names]
            if unknown:
                raise StepRefused(format_pointer((*where, unknown[0])), f"{unknown[0]!r} has no place outside")
            del holder[place[-1]]
            for name, value in members.items():
                _put(holder, name, value, path)

    return change, None  # an empty object would not come back


def _show(value: Any) -> str:
    from json import dumps

    text = dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else text[:37] + "..."


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aio" else f"a {kind}"


_KINDS: dict[str, tuple[Callable[[_Fields], Built], bool]] = {
    "rename": (_rename, False),
    "move": (_move, False),
    "wrap": (_wrap, True),
    "unwrap": (_unwrap, True),
    "set_default": (_set_default, False),
    "drop": (_drop, True),
    "map": (_map, False),
    "convert": (_convert, False),
    "split": (_split, False),
    "join": (_join, False),
    "nest": (_nest, False),
    "flatten": (_flatten, True),
}
