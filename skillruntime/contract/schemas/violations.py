"""List what is wrong with a value, keyword by keyword, by asking an engine nothing but
yes or no.

An engine's own list costs too much for adversarial values. jsonschema-rs builds all of
it before the first item can be read: each missing name copies the whole object (4,000
missing of 8,000: 9 s), each refused item copies its enum (500 items of an enum of
5,000: 0.2 s), and each union lists what every branch finds wrong, at every level of a
recursive value. Here a part that fits is never entered, a union's branches are listed
only when they are asked for, and a caller may stop after the first few violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from skillruntime.contract.schemas.pointer import Path, format_pointer
from skillruntime.contract.schemas.references import Location, References, properties_of
from skillruntime.contract.schemas.subschemas import in_place, property_locations
from skillruntime.errors import InvalidSkillError

Fits: TypeAlias = Callable[[Any, Location], bool]
# A part of the value that does not fit, the subschema that refuses it, and the path of
# the part.
Part: TypeAlias = tuple[Any, Location, Path]

# The keywords that look at nothing inside a value, in the order in which they are
# reported, each with the types of the values that it says anything about.
_NUMBERS = (int, float, Decimal)
_ASSERTIONS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("type", "enum", "const"), (object,)),
    "format": (str,),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _NUMBERS),
    "maxItems": (list,),
    "maxLength": (str,),
    "maxProperties": (dict,),
    "maximum": _NUMBERS,
    "minItems": (list,),
    "minLength": (str,),
    "minProperties": (dict,),
    "minimum": _NUMBERS,
    "multipleOf": _NUMBERS,
    "pattern": (str,),
    "uniqueItems": (list,),
}
_UNIONS = ("anyOf", "oneOf")
_ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "$schema",
        "$comment",
        "$defs",
        "definitions",
    }
)
# The keywords that apply other subschemas to the value itself.
_IN_PLACE = frozenset({"allOf", "if", "dependentSchemas", "dependencies"})
_UNTRACED = (
    "unevaluatedItems",
    "unevaluatedProperties",
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
)


class Violation(NamedTuple):
    """One keyword that a value breaks.

    ``path`` leads to the offending part of the value, ``location`` to the subschema
    that holds the keyword, ``names`` are the properties that are missing or unexpected,
    ``branches`` are the violations of each branch of an ``anyOf`` or ``oneOf``: made by
    ``list_branches`` when they are asked for, since a union of fifty branches has
    hundreds of them and most are never looked at.
    """

    keyword: str
    path: Path
    location: Path
    schema: Any
    value: Any
    names: tuple[str, ...] = ()
    list_branches: Callable[[], tuple[tuple[Violation, ...], ...]] | None = None

    @property
    def branches(self) -> tuple[tuple[Violation, ...], ...]:
        """The violations of each branch; empty where several branches of a ``oneOf``
        fit.
        """
        return self.list_branches() if self.list_branches is not None else ()

    @property
    def pointer(self) -> str:
        """The place in the value, as a JSON Pointer."""
        return format_pointer(self.path)

    @property
    def expected(self) -> Any:
        """What the keyword asks for, as the schema writes it."""
        return (
            self.schema.get(self.keyword)
            if isinstance(self.schema, dict)
            else self.schema
        )


class _Rules(NamedTuple):
    """What the subschema at one location asks for, read once: each item of an array
    asks for it again.

    ``counts`` is false where a reference hides the keywords beside it.
    """

    schema: Any
    counts: bool
    assertions: list[tuple[str, tuple[type, ...], Callable[[Any], bool]]]
    unions: list[tuple[str, list[Location]]]
    properties: dict[str, Location]
    patterns: dict[str, Location]
    targets: tuple[Location, ...]


class Lister:
    """Lists the violations of one schema; *compile_alone* returns the checker of a
    schema that refers to nothing.
    """

    def __init__(
        self,
        references: References,
        compile_alone: Callable[[Mapping[str, Any]], Callable[[Any], bool]],
    ) -> None:
        self._references = references
        self._compile_alone = compile_alone
        self._known: dict[Location, _Rules] = {}
        self._patterns: dict[str, Callable[[Any], bool]] = {}

    def violations(
        self, value: Any, location: Location, fits: Fits, path: Path = ()
    ) -> Iterator[Violation]:
        """Yield what is wrong with *value*, which is at *path* and does not fit the
        subschema at *location*.
        """
        pending: list[Part] = [(value, location, path)]
        # not by recursion, for each yield would pass through a frame for every level of
        # the value
        while pending:
            part, place, where = pending.pop()
            rules = self._rules(place)
            below: list[Part] = []
            is_traced = False
            try:
                for violation in self._here(part, rules, place, where, fits, below):
                    is_traced = True
                    yield violation
            except InvalidSkillError:
                # a part that an engine cannot compile alone: "$id" beside "$ref" in
                # draft 7
                pass
            if (
                not is_traced and not below
            ):  # such as a dynamic reference with several targets
                keyword = next(
                    (word for word in _UNTRACED if word in rules.schema), "schema"
                )
                yield Violation(keyword, where, place, rules.schema, part)
            # In the order of the schema, the first thing wrong first: a model reads the
            # first error.
            pending += reversed(below)

    def _here(
        self,
        value: Any,
        rules: _Rules,
        location: Location,
        path: Path,
        fits: Fits,
        below: list[Part],
    ) -> Iterator[Violation]:
        """Yield what the keywords at *location* find wrong with *value* itself; put
        what they refuse inside *below*.
        """
        schema = rules.schema
        if not isinstance(schema, dict):
            if schema is False:
                yield Violation(
                    str(location[-1]) if location else "false",
                    path,
                    location,
                    False,
                    value,
                )
            return
        if rules.counts:
            for keyword, types, check in rules.assertions:
                if isinstance(value, types) and not check(value):
                    yield Violation(keyword, path, location, schema, value)
            yield from self._unions(value, rules, location, path, fits)
            if isinstance(value, dict):
                yield from self._members(value, rules, location, path, fits, below)
            elif isinstance(value, list):
                yield from self._items(value, rules, location, path, fits, below)
            if not _IN_PLACE.isdisjoint(schema):
                below += (
                    (value, place, path)
                    for place in self._in_place(value, schema, location, fits)
                )
        # A dynamic reference with several targets is not followed: which one is meant
        # depends on the way of evaluation.
        if rules.targets:
            refusing = [
                (value, target, path)
                for target in rules.targets
                if not fits(value, target)
            ]
            if len(refusing) == len(rules.targets) and (
                len(refusing) == 1 or "$ref" in schema
            ):
                below += refusing

    def _unions(
        self, value: Any, rules: _Rules, location: Location, path: Path, fits: Fits
    ) -> Iterator[Violation]:
        schema = rules.schema
        for keyword, places in rules.unions:
            # The part is known to be refused: a union that stands alone need not be
            # asked, fifty branches each time.
            if not schema.keys() - _ANNOTATIONS <= {keyword}:
                fitting = islice((place for place in places if fits(value, place)), 2)
                if len(list(fitting)) in ((1, 2) if keyword == "anyOf" else (1,)):
                    continue

            def branches_of(
                places: list[Location] = places,
            ) -> tuple[tuple[Violation, ...], ...]:
                if any(
                    fits(value, place) for place in places
                ):  # several branches of a ``oneOf``
                    return ()
                return tuple(
                    tuple(self.violations(value, place, fits, path)) for place in places
                )

            yield Violation(
                keyword, path, location, schema, value, (), cache(branches_of)
            )
        if "not" in schema and fits(value, (*location, "not")):
            yield Violation("not", path, location, schema, value)

    def _in_place(
        self, value: Any, schema: dict[str, Any], location: Location, fits: Fits
    ) -> Iterator[Location]:
        """Yield the subschemas that surely apply to *value* itself and refuse it."""
        for index in range(
            len(schema["allOf"]) if isinstance(schema.get("allOf"), list) else 0
        ):
            if not fits(value, (*location, "allOf", index)):
                yield *location, "allOf", index
        if "if" in schema:
            branch = "then" if fits(value, (*location, "if")) else "else"
            if branch in schema and not fits(value, (*location, branch)):
                yield *location, branch
        for keyword in (
            ("dependentSchemas", "dependencies") if isinstance(value, dict) else ()
        ):
            rules = schema.get(keyword)
            for name, rule in rules.items() if isinstance(rules, dict) else ():
                if (
                    name in value
                    and not isinstance(rule, list)
                    and not fits(value, (*location, keyword, name))
                ):
                    yield *location, keyword, name

    def _members(
        self,
        value: dict[str, Any],
        rules: _Rules,
        location: Location,
        path: Path,
        fits: Fits,
        below: list[Part],
    ) -> Iterator[Violation]:
        schema = rules.schema
        has_rest = "additionalProperties" in schema
        unknown: list[str] = []
        for name, member in value.items():
            places = [rules.properties[name]] if name in rules.properties else []
            places += [
                place
                for pattern, place in rules.patterns.items()
                if self.matches(pattern, name)
            ]
            # 2020-12, core, 10.3.2.3: only members that neither `properties` nor
            # `patternProperties` names.
            if has_rest and not places:
                if schema["additionalProperties"] is False:
                    unknown.append(name)
                    continue
                places = [(*location, "additionalProperties")]
            below += (
                (member, place, (*path, name))
                for place in places
                if not fits(member, place)
            )
        if unknown:
            yield Violation(
                "additionalProperties", path, location, schema, value, tuple(unknown)
            )
        for keyword, name in _missing(value, schema):
            yield Violation(keyword, path, location, schema, value, (name,))
        # One violation for all names: a model needs to read the rule once.
        if "propertyNames" in schema and not all(
            fits(name, (*location, "propertyNames")) for name in value
        ):
            yield Violation("propertyNames", path, location, schema, value)
        if schema.get("unevaluatedProperties") is False:
            yield from self._unevaluated(value, schema, location, path)

    def _unevaluated(
        self, value: dict[str, Any], schema: Any, location: Location, path: Path
    ) -> Iterator[Violation]:
        # 2020-12, core, 11.3. What a schema asks of the others is not traced, nor what
        # beside patterns.
        declared = property_locations(self._references, [location])
        unknown = [name for name in value if name not in declared]
        if unknown and not any(
            "patternProperties" in each
            for _, each in in_place(self._references, [location])
        ):
            yield Violation(
                "unevaluatedProperties", path, location, schema, value, tuple(unknown)
            )

    def _items(
        self,
        value: list[Any],
        rules: _Rules,
        location: Location,
        path: Path,
        fits: Fits,
        below: list[Part],
    ) -> Iterator[Violation]:
        schema = rules.schema
        # Up to 2019-09 "items" may be a list, one schema for each place, and
        # "additionalItems" judges those behind.
        prefix, rest = (
            ("items", "additionalItems")
            if isinstance(schema.get("items"), list)
            else ("prefixItems", "items")
        )
        count = min(
            len(schema[prefix]) if isinstance(schema.get(prefix), list) else 0,
            len(value),
        )
        places: list[Location] = [(*location, prefix, index) for index in range(count)]
        if rest in schema:
            places += [(*location, rest)] * (len(value) - count)
        for index, place in enumerate(places):
            if not fits(value[index], place):
                below.append((value[index], place, (*path, index)))
        if "contains" in schema:
            # 2020-12, validation, 6.4.5: without `minContains` one item is enough to
            # ask for.
            least, most = (
                schema.get("minContains", 1),
                schema.get("maxContains", len(value)),
            )
            if (
                not least
                <= sum(fits(item, (*location, "contains")) for item in value)
                <= most
            ):
                yield Violation("contains", path, location, schema, value)

    def _rules(self, location: Location) -> _Rules:
        if location not in self._known:
            schema = self._references.schema_at(location)
            keywords = schema if isinstance(schema, dict) else {}
            # Up to draft 7 a reference hides what is beside it (draft 7, core, 8.3).
            counts = not ("$ref" in keywords and self._references.is_old)
            self._known[location] = _Rules(
                schema,
                counts,
                self._assertions(keywords) if counts else [],
                [
                    (
                        keyword,
                        [
                            (*location, keyword, index)
                            for index in range(len(keywords[keyword]))
                        ],
                    )
                    for keyword in _UNIONS
                    if isinstance(keywords.get(keyword), list)
                ],
                {
                    name: (*location, "properties", name)
                    for name in properties_of(schema)
                },
                {
                    each: (*location, "patternProperties", each)
                    for each in properties_of(schema, "patternProperties")
                },
                self._references.targets(location),
            )
        return self._known[location]

    def _assertions(
        self, schema: dict[str, Any]
    ) -> list[tuple[str, tuple[type, ...], Callable[[Any], bool]]]:
        """Return the keywords of *schema* that look at nothing inside a value, each
        with its types and its checker.
        """
        found = []
        for keyword, types in _ASSERTIONS.items():
            # Up to draft 4 an exclusive bound was true, beside the bound.
            if keyword in schema and not (
                keyword.startswith("exclusive") and schema[keyword] is True
            ):
                found.append(
                    (keyword, types, self._compile_alone({keyword: schema[keyword]}))
                )
        return found

    def matches(self, pattern: str, name: str) -> bool:
        """Whether *name* matches *pattern*: the engine is asked, since it takes linear
        time.
        """
        check = self._patterns.get(pattern)
        if check is None:
            check = self._patterns[pattern] = self._compile_alone({"pattern": pattern})
        return check(name)


def _missing(
    value: dict[str, Any], schema: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield each name that *value* lacks, with the keyword that requires it."""
    required = schema.get("required")
    for name in required if isinstance(required, list) else ():
        if name not in value:
            yield "required", name
    for keyword in ("dependentRequired", "dependencies"):
        rules = schema.get(keyword)
        lacking: dict[str, None] = {}
        for trigger, names in rules.items() if isinstance(rules, dict) else ():
            if trigger in value and isinstance(names, list):
                lacking |= dict.fromkeys(name for name in names if name not in value)
        yield from ((keyword, name) for name in lacking)
