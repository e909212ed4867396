"""List the violations of a value, keyword by keyword, by asking an engine only
yes-or-no questions.

An engine's own list costs too much for adversarial values. jsonschema-rs builds the
whole list before the first item can be read: each missing name copies the whole object
(4,000 missing of 8,000: 9 s), each refused item copies its enum (500 items of an enum
of 5,000: 0.2 s), and each union lists the violations of every branch, at every level of
a recursive value. Here a fitting part is never entered, a union's branches are listed
only on request, and a caller may stop after the first few violations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from skillruntime.contract.schemas.pointer import (
    WHOLE_VALUE,
    Location,
    ValuePath,
    format_pointer,
)
from skillruntime.contract.schemas.references import References, properties_of
from skillruntime.contract.schemas.subschemas import in_place, property_locations
from skillruntime.errors import InvalidSkillError

Fits: TypeAlias = Callable[[Any, Location], bool]

# The keywords that do not apply subschemas to a value's members, in the order of
# reporting, each with the types of values that it constrains.
_NUMBERS = (int, float, Decimal)
_ASSERTIONS: dict[str, tuple[type, ...]] = {
    "type": (object,),
    "enum": (object,),
    "const": (object,),
    "format": (str,),
    "exclusiveMaximum": _NUMBERS,
    "exclusiveMinimum": _NUMBERS,
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
# The keywords whose violations may not be traceable to a part, the most informative
# first.
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
    with the keyword; ``names`` are the missing or unexpected properties. ``branches``
    are the violations of each branch of an ``anyOf`` or ``oneOf``. ``list_branches``
    makes them only on request, since a union of fifty branches has hundreds of
    violations, and most are never read.
    """

    keyword: str
    path: ValuePath
    location: Location
    schema: Any
    value: Any
    names: tuple[str, ...] = ()
    list_branches: Callable[[], tuple[tuple[Violation, ...], ...]] | None = None

    @property
    def branches(self) -> tuple[tuple[Violation, ...], ...]:
        """The violations of each branch; empty if several branches of a ``oneOf`` fit."""
        if self.list_branches is None:
            return ()
        return self.list_branches()

    @property
    def pointer(self) -> str:
        """The place in the value as a JSON Pointer."""
        return format_pointer(self.path)

    @property
    def expected(self) -> Any:
        """The keyword's value in the schema."""
        if isinstance(self.schema, dict):
            return self.schema.get(self.keyword)
        return self.schema

    @property
    def branch_locations(self) -> list[Location]:
        """The locations of the branches of an ``anyOf`` or ``oneOf``."""
        return [
            Location((*self.location, self.keyword, index))
            for index in range(len(self.expected))
        ]


class _Part(NamedTuple):
    """A part of the value that does not fit, the location of the subschema that refuses
    it, and the part's path.
    """

    value: Any
    location: Location
    path: ValuePath


class _Assertion(NamedTuple):
    """A keyword that does not apply subschemas to a value's members, the types of
    values that it constrains, and its checker.
    """

    keyword: str
    types: tuple[type, ...]
    check: Callable[[Any], bool]


class _Rules(NamedTuple):
    """The rules of the subschema at one location.

    They are read once, because each item of an array needs them again. ``counts`` is
    false if a reference hides the keywords beside it.
    """

    schema: Any
    counts: bool
    assertions: list[_Assertion]
    unions: list[tuple[str, list[Location]]]
    properties: dict[str, Location]
    patterns: dict[str, Location]
    targets: tuple[Location, ...]


class Lister:
    """Lists the violations of one schema; *compile_alone* returns the checker of a
    schema without references.
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

    def listed(
        self, value: Any, location: Location, fits: Fits, most: int | None
    ) -> list[Violation]:
        """Return the violations of *value*, at most *most*."""
        return list(islice(self.violations(value, location, fits), most))

    def violations(
        self, value: Any, location: Location, fits: Fits, path: ValuePath = WHOLE_VALUE
    ) -> Iterator[Violation]:
        """Yield the violations of *value*, which is at *path* and does not fit the
        subschema at *location*.
        """
        # No recursion, because each yield would pass through a frame for every level of
        # the value.
        pending = [_Part(value, location, path)]
        while pending:
            part = pending.pop()
            rules = self._rules(part.location)
            below: list[_Part] = []
            is_traced = False
            try:
                for violation in self._violations_of(part, rules, fits, below):
                    is_traced = True
                    yield violation
            except InvalidSkillError:
                # The engine cannot compile this part alone: for example "$id" beside
                # "$ref" in draft 7.
                pass
            if not is_traced and not below:
                # The violation cannot be traced, for example through a dynamic
                # reference with several targets.
                keyword = next(
                    (word for word in _UNTRACED if word in rules.schema), "schema"
                )
                yield _violation(keyword, part, rules.schema)
            # Keep the order of the schema, because a model reads the first error.
            pending += reversed(below)

    def _violations_of(
        self, part: _Part, rules: _Rules, fits: Fits, below: list[_Part]
    ) -> Iterator[Violation]:
        """Yield the violations of the subschema's keywords by *part* itself. Add to
        *below* the parts inside it that they refuse.
        """
        value, location, path = part
        schema = rules.schema
        if not isinstance(schema, dict):
            if schema is False:
                keyword = str(location[-1]) if location else "false"
                yield _violation(keyword, part, False)
            return
        if rules.counts:
            for keyword, types, check in rules.assertions:
                if isinstance(value, types) and not check(value):
                    yield _violation(keyword, part, schema)
            yield from self._violations_of_unions(part, rules, fits)
            if isinstance(value, dict):
                yield from self._violations_of_members(part, rules, fits, below)
            elif isinstance(value, list):
                yield from self._violations_of_items(part, rules, fits, below)
            if not _IN_PLACE.isdisjoint(schema):
                for place in _refusing_in_place(value, schema, location, fits):
                    below.append(_Part(value, place, path))
        refusing = [
            _Part(value, target, path)
            for target in rules.targets
            if not fits(value, target)
        ]
        # A dynamic reference with several targets is not followed, because the right
        # target depends on the path of evaluation.
        is_followed = len(rules.targets) == 1 or "$ref" in schema
        if is_followed and len(refusing) == len(rules.targets):
            below += refusing

    def _violations_of_unions(
        self, part: _Part, rules: _Rules, fits: Fits
    ) -> Iterator[Violation]:
        value, location, path = part
        schema = rules.schema
        for keyword, places in rules.unions:
            # This part is known to fail, so if the schema is only a union, the union is
            # the cause, and testing up to fifty branches again would be wasted.
            is_only_union = schema.keys() - _ANNOTATIONS <= {keyword}
            if not is_only_union and _fits_union(value, keyword, places, fits):
                continue

            def branches_of(
                places: list[Location] = places,
            ) -> tuple[tuple[Violation, ...], ...]:
                # A branch fits, so this is a `oneOf` with several fitting branches.
                if any(fits(value, place) for place in places):
                    return ()
                return tuple(
                    tuple(self.violations(value, place, fits, path)) for place in places
                )

            yield Violation(
                keyword, path, location, schema, value, (), cache(branches_of)
            )
        if "not" in schema and fits(value, Location((*location, "not"))):
            yield _violation("not", part, schema)

    def _violations_of_members(
        self, part: _Part, rules: _Rules, fits: Fits, below: list[_Part]
    ) -> Iterator[Violation]:
        value, location, path = part
        schema = rules.schema
        has_rest = "additionalProperties" in schema
        unknown: list[str] = []
        for name, member in value.items():
            places: list[Location] = []
            if name in rules.properties:
                places.append(rules.properties[name])
            for pattern, place in rules.patterns.items():
                if self.matches(pattern, name):
                    places.append(place)
            # JSON Schema 2020-12, core, 10.3.2.3: only members that neither
            # `properties` nor `patternProperties` names.
            if has_rest and not places:
                if schema["additionalProperties"] is False:
                    unknown.append(name)
                    continue
                places = [Location((*location, "additionalProperties"))]
            for place in places:
                if not fits(member, place):
                    below.append(_Part(member, place, ValuePath((*path, name))))
        if unknown:
            yield _violation("additionalProperties", part, schema, tuple(unknown))
        for keyword, name in _missing(value, schema):
            yield _violation(keyword, part, schema, (name,))
        if "propertyNames" in schema:
            place = Location((*location, "propertyNames"))
            # Report one violation for all names, because a model needs to read the rule
            # only once.
            if not all(fits(name, place) for name in value):
                yield _violation("propertyNames", part, schema)
        if schema.get("unevaluatedProperties") is False:
            unknown = self._unevaluated(value, location)
            if unknown:
                yield _violation("unevaluatedProperties", part, schema, tuple(unknown))

    def _unevaluated(self, value: dict[str, Any], location: Location) -> list[str]:
        """Return the members of *value* that no subschema at *location* evaluates.

        See JSON Schema 2020-12, core, 11.3. Members that `unevaluatedProperties` judges
        by a schema are not traced; if the schema has patterns, no member is traced.
        """
        for _, schema in in_place(self._references, [location]):
            if "patternProperties" in schema:
                return []
        declared = property_locations(self._references, [location])
        return [name for name in value if name not in declared]

    def _violations_of_items(
        self, part: _Part, rules: _Rules, fits: Fits, below: list[_Part]
    ) -> Iterator[Violation]:
        value, location, path = part
        schema = rules.schema
        for index, place in enumerate(_places_of_items(schema, location, len(value))):
            if not fits(value[index], place):
                below.append(_Part(value[index], place, ValuePath((*path, index))))
        if "contains" in schema:
            # JSON Schema 2020-12, validation, 6.4.5: without `minContains` one item is
            # enough.
            least = schema.get("minContains", 1)
            most = schema.get("maxContains", len(value))
            place = Location((*location, "contains"))
            count = sum(fits(item, place) for item in value)
            if count < least or count > most:
                yield _violation("contains", part, schema)

    def _rules(self, location: Location) -> _Rules:
        rules = self._known.get(location)
        if rules is None:
            rules = self._known[location] = self._read_rules(location)
        return rules

    def _read_rules(self, location: Location) -> _Rules:
        schema = self._references.schema_at(location)
        keywords = schema if isinstance(schema, dict) else {}
        # Up to draft 7 a reference hides the keywords beside it (draft 7, core, 8.3).
        counts = not ("$ref" in keywords and self._references.is_old)
        unions: list[tuple[str, list[Location]]] = []
        for keyword in _UNIONS:
            branches = keywords.get(keyword)
            if isinstance(branches, list):
                places = [
                    Location((*location, keyword, index))
                    for index in range(len(branches))
                ]
                unions.append((keyword, places))
        return _Rules(
            schema,
            counts,
            assertions=self._assertions(keywords) if counts else [],
            unions=unions,
            properties=_locations_under(schema, location, "properties"),
            patterns=_locations_under(schema, location, "patternProperties"),
            targets=self._references.targets(location),
        )

    def _assertions(self, schema: dict[str, Any]) -> list[_Assertion]:
        """Return the keywords of *schema* that do not apply subschemas to a value's
        members.
        """
        assertions: list[_Assertion] = []
        for keyword, types in _ASSERTIONS.items():
            if keyword not in schema:
                continue
            # Up to draft 4 an exclusive bound was the value true beside the bound.
            if keyword.startswith("exclusive") and schema[keyword] is True:
                continue
            check = self._compile_alone({keyword: schema[keyword]})
            assertions.append(_Assertion(keyword, types, check))
        return assertions

    def matches(self, pattern: str, name: str) -> bool:
        """Return whether *name* matches *pattern*, by asking the engine, which takes
        linear time.
        """
        check = self._patterns.get(pattern)
        if check is None:
            check = self._patterns[pattern] = self._compile_alone({"pattern": pattern})
        return check(name)


def _violation(
    keyword: str, part: _Part, schema: Any, names: tuple[str, ...] = ()
) -> Violation:
    return Violation(keyword, part.path, part.location, schema, part.value, names)


def _fits_union(value: Any, keyword: str, places: list[Location], fits: Fits) -> bool:
    """Return whether the number of fitting branches is right for *keyword*."""
    fitting = islice((place for place in places if fits(value, place)), 2)
    count = len(list(fitting))
    if keyword == "anyOf":
        return count > 0
    return count == 1


def _refusing_in_place(
    value: Any, schema: dict[str, Any], location: Location, fits: Fits
) -> Iterator[Location]:
    """Yield the locations of the subschemas that certainly apply to *value* itself and
    refuse it.
    """
    if isinstance(schema.get("allOf"), list):
        for index in range(len(schema["allOf"])):
            if not fits(value, Location((*location, "allOf", index))):
                yield Location((*location, "allOf", index))
    if "if" in schema:
        branch = "then" if fits(value, Location((*location, "if"))) else "else"
        if branch in schema and not fits(value, Location((*location, branch))):
            yield Location((*location, branch))
    if not isinstance(value, dict):
        return
    for keyword in ("dependentSchemas", "dependencies"):
        for name, rule in properties_of(schema, keyword).items():
            # Up to draft 7 `dependencies` may also have lists of required names.
            if name not in value or isinstance(rule, list):
                continue
            if not fits(value, Location((*location, keyword, name))):
                yield Location((*location, keyword, name))


def _places_of_items(
    schema: dict[str, Any], location: Location, count: int
) -> list[Location]:
    """Return the locations of the subschemas of an array's *count* items, up to the
    last item that has one.
    """
    # Up to 2019-09 "items" may be a list, one schema for each place, and
    # "additionalItems" judges the items after them.
    if isinstance(schema.get("items"), list):
        prefix, rest = "items", "additionalItems"
    else:
        prefix, rest = "prefixItems", "items"
    first = schema.get(prefix)
    in_prefix = min(len(first), count) if isinstance(first, list) else 0
    places: list[Location] = [
        Location((*location, prefix, index)) for index in range(in_prefix)
    ]
    if rest in schema:
        places += [Location((*location, rest))] * (count - in_prefix)
    return places


def _locations_under(
    schema: Any, location: Location, keyword: str
) -> dict[str, Location]:
    return {
        name: Location((*location, keyword, name))
        for name in properties_of(schema, keyword)
    }


def _missing(
    value: dict[str, Any], schema: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    """Yield each name that *value* lacks, with the keyword that requires it."""
    required = schema.get("required")
    if isinstance(required, list):
        for name in required:
            if name not in value:
                yield "required", name
    for keyword in ("dependentRequired", "dependencies"):
        if keyword not in schema:
            continue
        lacking: dict[str, None] = {}
        for trigger, names in properties_of(schema, keyword).items():
            if trigger in value and isinstance(names, list):
                lacking |= dict.fromkeys(name for name in names if name not in value)
        for name in lacking:
            yield keyword, name
