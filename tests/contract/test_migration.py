"""Migrations: steps as data, chains, and what is wrong with a broken document."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.contract import Contract, Migration, Version
from skillruntime.contract.migration.migration import MigrationError, chain, link
from skillruntime.errors import ErrorCode, InvalidSkillError, SkillInputError

NEWS = {
    "from": ">=1.0.0,<2.0.0",
    "to": "2.0.0",
    "accepts": {"type": "object", "properties": {"topics": {"type": "string"}}},
    "steps": [
        {"wrap": "/topics"},
        {"rename": {"from": "/count", "to": "/max_articles_per_topic"}},
    ],
}


def steps(*documents: dict[str, Any]) -> Migration:
    return Migration.from_dict({"from": "1.x", "to": "2.0.0", "steps": list(documents)})


STEPS = {
    "rename": (
        {"rename": {"from": "/count", "to": "/limit"}},
        {"count": 3},
        {"limit": 3},
    ),
    "rename in an object": (
        {"rename": {"from": "/o/a", "to": "/o/b"}},
        {"o": {"a": 1}},
        {"o": {"b": 1}},
    ),
    "rename in items": (
        {"rename": {"from": "/articles/*/name", "to": "/articles/*/title"}},
        {"articles": [{"name": "a"}, {}, {"name": "b", "n": 1}, 5]},
        {"articles": [{"title": "a"}, {}, {"n": 1, "title": "b"}, 5]},
    ),
    "rename two arrays down": (
        {"rename": {"from": "/a/*/b/*/x", "to": "/a/*/b/*/y"}},
        {"a": [{"b": [{"x": 1}, {"x": 2}]}, {"b": []}]},
        {"a": [{"b": [{"y": 1}, {"y": 2}]}, {"b": []}]},
    ),
    "a star is a key where an object stands": (
        {"rename": {"from": "/o/*/x", "to": "/o/*/y"}},
        {"o": {"*": {"x": 1}, "a": {"x": 1}}},
        {"o": {"*": {"y": 1}, "a": {"x": 1}}},
    ),
    "escaped tokens": (
        {"rename": {"from": "/a~1b", "to": "/a~0b"}},
        {"a/b": 1},
        {"a~b": 1},
    ),
    "move up": (
        {"move": {"from": "/options/lang", "to": "/lang"}},
        {"options": {"lang": "en"}},
        {"options": {}, "lang": "en"},
    ),
    "move in items": (
        {"move": {"from": "/items/*/meta/name", "to": "/items/*/name"}},
        {"items": [{"meta": {"name": "a"}}, {"meta": {}}]},
        {"items": [{"meta": {}, "name": "a"}, {"meta": {}}]},
    ),
    "move down": (
        {"move": {"from": "/lang", "to": "/options/text/lang"}},
        {"lang": "en", "options": {"n": 1}},
        {"options": {"n": 1, "text": {"lang": "en"}}},
    ),
    "wrap": ({"wrap": "/topics"}, {"topics": "AI"}, {"topics": ["AI"]}),
    "wrap leaves an array": (
        {"wrap": "/topics"},
        {"topics": ["AI", "ML"]},
        {"topics": ["AI", "ML"]},
    ),
    "wrap an item": ({"wrap": "/rows/*"}, {"rows": [1, [2]]}, {"rows": [[1], [2]]}),
    "unwrap": ({"unwrap": "/topics"}, {"topics": ["AI"]}, {"topics": "AI"}),
    "unwrap leaves a value": (
        {"unwrap": "/topics"},
        {"topics": "AI"},
        {"topics": "AI"},
    ),
    "set_default": (
        {"set_default": {"at": "/format", "value": ["a"]}},
        {},
        {"format": ["a"]},
    ),
    "set_default keeps what is given": (
        {"set_default": {"at": "/format", "value": "a"}},
        {"format": None},
        {"format": None},
    ),
    "set_default makes no objects": (
        {"set_default": {"at": "/o/x", "value": 1}},
        {},
        {},
    ),
    "set_default in items": (
        {"set_default": {"at": "/a/*/x", "value": {}}},
        {"a": [{}, {"x": 1}]},
        {"a": [{"x": {}}, {"x": 1}]},
    ),
    "drop": ({"drop": "/legacy"}, {"legacy": 1, "a": 2}, {"a": 2}),
    "map": (
        {"map": {"at": "/level", "values": {"low": "minimal"}}},
        {"level": "low"},
        {"level": "minimal"},
    ),
    "map leaves others": (
        {"map": {"at": "/level", "values": {"low": "minimal"}}},
        {"level": 5},
        {"level": 5},
    ),
    "map otherwise": (
        {"map": {"at": "/level", "values": {"low": 1}, "otherwise": None}},
        {"level": "x"},
        {"level": None},
    ),
    "map by JSON equality": (
        {"map": {"at": "/a/*", "values": [[1, "one"], [True, "yes"]]}},
        {"a": [1.0, True, 2]},
        {"a": ["one", "yes", 2]},
    ),
    "convert to string": (
        {"convert": {"at": "/n", "to": "string"}},
        {"n": 5.0},
        {"n": "5"},
    ),
    "convert to integer": (
        {"convert": {"at": "/n", "to": "integer"}},
        {"n": "5"},
        {"n": 5},
    ),
    "convert to number": (
        {"convert": {"at": "/n", "to": "number"}},
        {"n": "2.5"},
        {"n": 2.5},
    ),
    "convert to boolean": (
        {"convert": {"at": "/n", "to": "boolean"}},
        {"n": "true"},
        {"n": True},
    ),
    "boolean to integer": (
        {"convert": {"at": "/n", "from": "boolean", "to": "integer"}},
        {"n": True},
        {"n": 1},
    ),
    "convert only from": (
        {"convert": {"at": "/n", "from": "string", "to": "integer"}},
        {"n": [1]},
        {"n": [1]},
    ),
    "convert by a factor": (
        {"convert": {"at": "/hours", "factor": 24}},
        {"hours": 7},
        {"hours": 168},
    ),
    "convert by a divisor": (
        {"convert": {"at": "/hours", "divisor": 60}},
        {"hours": 90},
        {"hours": 1.5},
    ),
    "convert exactly": (
        {"convert": {"at": "/cents", "factor": 100}},
        {"cents": 0.29},
        {"cents": 29},
    ),
    "split": (
        {"split": {"at": "/topics", "separator": ","}},
        {"topics": "AI, ML"},
        {"topics": ["AI", "ML"]},
    ),
    "split without empty parts": (
        {"split": {"at": "/topics", "separator": ","}},
        {"topics": "AI,, space ,"},
        {"topics": ["AI", "space"]},
    ),
    "split nothing": (
        {"split": {"at": "/topics", "separator": ","}},
        {"topics": ""},
        {"topics": []},
    ),
    "split leaves an array": (
        {"split": {"at": "/topics", "separator": ","}},
        {"topics": ["a"]},
        {"topics": ["a"]},
    ),
    "convert with an offset": (
        {"convert": {"at": "/t", "factor": 1.8, "offset": 32}},
        {"t": 21.5},
        {"t": 70.7},
    ),
    "convert by an offset": (
        {"convert": {"at": "/k", "offset": 273.15}},
        {"k": 20},
        {"k": 293.15},
    ),
}


@pytest.mark.parametrize(("step", "old", "new"), STEPS.values(), ids=STEPS)
def test_a_step_does_what_it_says(
    step: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> None:
    """Every kind of step, at every kind of place; the input is never changed."""
    before = copy.deepcopy(old)

    assert steps(step).apply(old) == new
    assert old == before


@pytest.mark.parametrize(
    ("step", "old", "path"),
    [
        ({"rename": {"from": "/a", "to": "/b"}}, {"a": 1, "b": 2}, "/b"),
        (
            {"rename": {"from": "/r/*/a", "to": "/r/*/b"}},
            {"r": [{}, {"a": 1, "b": 2}]},
            "/r/1/b",
        ),
        ({"move": {"from": "/a", "to": "/o/a"}}, {"a": 1, "o": 5}, "/o"),
        ({"move": {"from": "/a", "to": "/o/a"}}, {"a": 1, "o": {"a": 2}}, "/o/a"),
        ({"unwrap": "/a"}, {"a": [1, 2]}, "/a"),
        ({"unwrap": "/a"}, {"a": []}, "/a"),
        ({"drop": "/a/0"}, {"a": [1]}, "/a/0"),
        ({"convert": {"at": "/a", "to": "integer"}}, {"a": "five"}, "/a"),
        ({"convert": {"at": "/a", "to": "integer"}}, {"a": 5.5}, "/a"),
        ({"convert": {"at": "/a", "to": "integer"}}, {"a": None}, "/a"),
        ({"convert": {"at": "/a", "to": "boolean"}}, {"a": "yes"}, "/a"),
        ({"convert": {"at": "/a", "to": "number"}}, {"a": "NaN"}, "/a"),
        ({"convert": {"at": "/a", "to": "number"}}, {"a": "9" * 5000}, "/a"),
        ({"convert": {"at": "/a", "factor": 10}}, {"a": 1e308}, "/a"),
    ],
)
def test_a_step_that_cannot_be_taken_names_itself_and_the_place(
    step: dict[str, Any], old: dict[str, Any], path: str
) -> None:
    """No step overwrites, guesses or loses: it refuses, with its index and the JSON
    Pointer.
    """
    before = copy.deepcopy(old)

    with pytest.raises(MigrationError) as caught:
        steps({"drop": "/unused"}, step).apply(old)

    assert (caught.value.step, caught.value.path) == (1, path)
    assert f"in step 1 ({next(iter(step))})" in str(caught.value)
    assert caught.value.to_errors()[0].code is ErrorCode.INVALID_INPUT
    assert old == before


def test_the_migration_of_the_contract_document() -> None:
    """Contract document, 31.5: v1's topics is a string, v2's an array; what is new
    already stays as it is.
    """
    migration = Migration.from_dict(NEWS)

    assert migration.apply({"topics": "AI", "count": 3}) == {
        "topics": ["AI"],
        "max_articles_per_topic": 3,
    }
    assert migration.apply({"topics": ["AI"]}) == {"topics": ["AI"]}
    assert migration.covers("1.9.0")
    assert not migration.covers("2.0.0")


def test_a_migrated_value_shares_nothing_with_its_input_or_document() -> None:
    """Whoever changes the result changes nothing else."""
    migration = steps(
        {"set_default": {"at": "/a", "value": []}},
        {"map": {"at": "/b", "values": {"x": []}}},
    )
    old: dict[str, Any] = {"c": [], "b": "x"}

    first = migration.apply(old)
    for name in "abc":
        first[name].append(1)

    assert migration.apply(old) == {"a": [], "b": [], "c": []}


BROKEN: dict[str, tuple[Any, list[str]]] = {
    "no object": ([], [""]),
    "nothing": ({}, ["", ""]),
    "bad version": ({"to": "latest", "steps": []}, ["/to"]),
    "bad range": ({"from": "abc", "to": "2.0.0", "steps": []}, ["/from"]),
    "its own target": ({"from": ">=1.0.0", "to": "2.0.0", "steps": []}, ["/from"]),
    "unknown key": ({"to": "2.0.0", "steps": [], "stpes": []}, ["/stpes"]),
    "no schema": ({"to": "2.0.0", "steps": [], "accepts": "x"}, ["/accepts"]),
    "steps no array": ({"to": "2.0.0", "steps": {}}, ["/steps"]),
    "output": ({"to": "2.0.0", "steps": [], "output": [{"drop": "/a"}]}, ["/output"]),
    "the empty name twice": (
        {"to": "2.0.0", "steps": [{"rename": {"from": "/", "to": "/"}}]},
        ["/steps/0/rename"],
    ),
    "all at once": (
        {
            "to": "x",
            "steps": [
                {"wrap": "topics"},
                {"rename": {"from": "/a"}},
                {"fly": "/a"},
                {"wrap": "/a", "drop": "/b"},
                {"rename": {"from": "/a", "to": "/o/b", "why": 1}},
                5,
                {"map": {"at": "/a", "values": []}},
                {"convert": {"at": "/a", "to": "date"}},
                {"convert": {"at": "/a", "factor": 0}},
                {"convert": {"at": "/a"}},
                {"split": {"at": "/a", "separator": ""}},
                {"rename": {"from": "/x/y", "to": "/z"}},
                {"drop": ""},
                {"drop": "/a/*"},
                {"move": {"from": "/a/*/x", "to": "/b/*/x"}},
                {"move": {"from": "/a", "to": "/a/b"}},
                {"map": {"at": "/a", "values": [[1, 2], [1.0, 3]]}},
                {"rename": "/a"},
                {"convert": {"at": "/a", "factor": True}},
                {"wrap": "/a" * 100},
            ],
        },
        [
            "/to",
            *(
                "/steps/0/wrap/at",
                "/steps/1/rename",
                "/steps/2",
                "/steps/3",
                "/steps/4/rename",
                "/steps/4/rename/why",
            ),
            *(
                "/steps/5",
                "/steps/6/map/values",
                "/steps/7/convert/to",
                "/steps/8/convert/factor",
                "/steps/9/convert",
            ),
            *(
                "/steps/10/split/separator",
                "/steps/11/rename",
                "/steps/12/drop/at",
                "/steps/13/drop/at",
            ),
            *("/steps/14/move", "/steps/15/move", "/steps/16/map/values"),
            *("/steps/17/rename", "/steps/18/convert/factor", "/steps/19/wrap/at"),
        ],
    ),
}


@pytest.mark.parametrize(("document", "paths"), BROKEN.values(), ids=BROKEN)
def test_all_faults_of_a_document_are_reported_at_once(
    document: Any, paths: list[str]
) -> None:
    """One InvalidSkillError lists every fault with its place in the document."""
    with pytest.raises(InvalidSkillError) as caught:
        Migration.from_dict(document)

    assert caught.value.details is not None
    assert [fault["path"] for fault in caught.value.details["faults"]] == paths


def test_ten_thousand_steps_are_refused() -> None:
    """An untrusted document costs a bounded amount of work."""
    with pytest.raises(InvalidSkillError, match="1000 are allowed"):
        steps(*[{"drop": "/a"}] * 10_000)


def test_a_version_is_read_leniently_in_a_document() -> None:
    """YAML writes 2 where 2.0.0 is meant."""
    assert Migration.from_dict({"to": 2, "steps": []}).to == Version(2, 0, 0)


def test_a_host_function_is_a_migration() -> None:
    """Contract document, 31.5: migrate_from_v1, as the host's own code."""

    def migrate_from_v1(v1_input: dict[str, Any]) -> dict[str, Any]:
        v1_input["topics"] = [v1_input["topics"]]
        return v1_input

    migration = Migration.from_function(migrate_from_v1, to="2.0.0", source="1.x")
    old = {"topics": "AI"}

    assert migration.apply(old) == {"topics": ["AI"]}
    assert old == {"topics": "AI"}


@pytest.mark.parametrize(
    "function", [lambda arguments: arguments["missing"], lambda arguments: [1]]
)
def test_a_host_function_that_fails_is_a_migration_error(function: Any) -> None:
    """A call that cannot be migrated is refused; the model is not shown the inside of
    the function.
    """
    with pytest.raises(MigrationError, match="cannot migrate to"):
        Migration.from_function(function, to="2.0.0").apply({"a": "secret"})


def test_linked_migrations_start_where_the_one_before_ends() -> None:
    """DESIGN: a migration's default range is from the previous target up to its own."""
    documents = [{"to": "3.0.0", "steps": []}, {"to": "2.0.0", "steps": []}]

    linked = link(map(Migration.from_dict, documents), Version(3, 1, 0))

    assert [str(migration.source) for migration in linked] == [
        "<2.0.0",
        ">=2.0.0,<3.0.0",
    ]


def test_a_chain_starts_at_the_version_and_leads_to_the_last() -> None:
    """1 -> 2 -> 3, entered wherever the caller stands."""
    linked = link(
        Migration.from_dict({"to": to, "steps": []})
        for to in ("2.0.0", "3.0.0", "4.0.0")
    )

    def found(version: str) -> list[str]:
        return [str(migration.to) for migration in chain(linked, version)]

    assert found("1.2.3") == ["2.0.0", "3.0.0", "4.0.0"]
    assert found("2.0.0") == ["3.0.0", "4.0.0"]
    assert found("3.9.9") == ["4.0.0"]
    assert found("4.0.0") == []
    assert (
        found("2.0.0-rc.1") == []
    )  # a prerelease lies in no range that does not name one


def test_a_shortcut_is_taken() -> None:
    """Of several migrations that cover a version, the one that leads furthest."""
    documents = [
        {"from": "1.x", "to": "2.0.0"},
        {"from": "2.x", "to": "3.0.0"},
        {"from": "1.x", "to": "3.0.0"},
    ]
    linked = link(
        Migration.from_dict({**document, "steps": []}) for document in documents
    )

    assert [str(migration.to) for migration in chain(linked, "1.5.0")] == ["3.0.0"]


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([{"to": "2.0.0"}, {"to": "2.0.0"}], "two migrations lead to 2.0.0"),
        (
            [{"from": "1.x", "to": "2.0.0"}, {"from": ">=2.1.0,<3.0.0", "to": "3.0.0"}],
            "nothing leads on from 2.0.0",
        ),
        ([{"to": "5.0.0"}], "above the contract's version 3.0.0"),
    ],
)
def test_migrations_that_do_not_lead_on_are_refused(
    documents: list[dict[str, Any]], sentence: str
) -> None:
    """A hole in the chain is found when the contract is read, not when a caller falls
    into it.
    """
    migrations = [
        Migration.from_dict({**document, "steps": []}) for document in documents
    ]

    with pytest.raises(InvalidSkillError, match=sentence):
        link(migrations, Version(3, 0, 0))


# Laws
# ------------------------------------------------------------

NAMES = ["a", "b", "c", "d"]
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-99, 99)
    | st.sampled_from(["", "x", "y", "x,y", "5", "true"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
    ),
)
objects = st.dictionaries(st.sampled_from(NAMES), values, max_size=4)
pointers = st.lists(st.sampled_from([*NAMES, "*", "0"]), min_size=1, max_size=3).map(
    lambda tokens: "/" + "/".join(tokens)
)
one_pointer = st.sampled_from(["wrap", "unwrap", "drop"])
names = st.sampled_from(NAMES).map(lambda name: "/" + name)
kinds = st.sampled_from(["string", "integer", "number", "boolean"])
tables = st.lists(st.tuples(scalars, scalars).map(list), min_size=1, max_size=3)
documents = (
    st.tuples(one_pointer, pointers)
    | st.tuples(
        st.sampled_from(["rename", "move"]),
        st.fixed_dictionaries({"from": pointers, "to": pointers}),
    )
    | st.tuples(
        st.just("set_default"),
        st.fixed_dictionaries({"at": pointers, "value": scalars}),
    )
    | st.tuples(
        st.just("map"), st.fixed_dictionaries({"at": pointers, "values": tables})
    )
    | st.tuples(
        st.just("convert"), st.fixed_dictionaries({"at": pointers, "to": kinds})
    )
    | st.tuples(
        st.just("convert"),
        st.fixed_dictionaries({"at": pointers, "factor": st.integers(1, 60)}),
    )
    | st.tuples(
        st.just("split"),
        st.fixed_dictionaries({"at": pointers, "separator": st.just(",")}),
    )
    | st.tuples(
        st.just("convert"),
        st.fixed_dictionaries({"at": pointers, "offset": st.integers(-9, 9)}),
    )
).map(lambda step: dict([step]))


def read(*documents: dict[str, Any]) -> Migration | None:
    try:
        return steps(*documents)
    except InvalidSkillError:
        return None


@given(st.lists(documents, max_size=4), objects)
def test_no_step_changes_its_input_or_raises_anything_else(
    documents: list[dict[str, Any]], value: dict[str, Any]
) -> None:
    """Any steps on any value give a new object or a MigrationError; the input stays as
    it was.
    """
    before, migration = copy.deepcopy(value), read(*documents)
    if migration is None:
        return

    try:
        assert isinstance(migration.apply(value), dict)
    except MigrationError as error:
        assert 0 <= error.step < len(documents)
    assert value == before


@given(documents, documents, objects)
def test_a_chain_is_the_composition_of_its_migrations(
    first: dict[str, Any], second: dict[str, Any], value: dict[str, Any]
) -> None:
    """All steps in one migration, or one after the other in two, come to the same."""
    both, one, two = read(first, second), read(first), read(second)
    if both is None or one is None or two is None:
        return

    def outcome(*migrations: Migration) -> Any:
        result = value
        try:
            for migration in migrations:
                result = migration.apply(result)
        except MigrationError:
            return MigrationError
        return result

    assert outcome(both) == outcome(one, two)


OLD = st.fixed_dictionaries(
    {},
    optional={
        "name": st.text("ab ", max_size=3),
        "count": st.integers(),
        "level": st.sampled_from(["low", "high"]),
        "verbose": st.booleans(),
        "tags": st.text("ab,", max_size=5),
        "rows": st.lists(
            st.fixed_dictionaries(
                {}, optional={"id": st.integers(), "unit": st.just("g")}
            ),
            max_size=3,
        ),
        "days": st.integers(),
        "heat": st.integers(-99, 99) | st.sampled_from([21.5, -0.1, 36.6]),
        "options": st.fixed_dictionaries(
            {}, optional={"lang": st.sampled_from(["en", "de"])}
        ),
    },
)
REPEATABLE = [
    {"rename": {"from": "/name", "to": "/title"}},
    {"wrap": "/title"},
    {"convert": {"at": "/count", "from": "integer", "to": "string"}},
    {"map": {"at": "/level", "values": {"low": 1, "high": 2}}},
    {"convert": {"at": "/heat", "factor": 1.8, "offset": 32}},
    {"convert": {"at": "/verbose", "from": "boolean", "to": "integer"}},
    {"split": {"at": "/tags", "separator": ","}},
    {"rename": {"from": "/rows/*/id", "to": "/rows/*/key"}},
    {"move": {"from": "/count", "to": "/limits/count"}},
    {"convert": {"at": "/days", "factor": 24}},
    {"rename": {"from": "/days", "to": "/hours"}},
    {"move": {"from": "/options/lang", "to": "/lang"}},
    {"set_default": {"at": "/format", "value": "brief"}},
]


@given(OLD)
def test_what_is_in_the_new_shape_already_is_untouched(value: dict[str, Any]) -> None:
    """A migration applied to its own result changes nothing, except units: 7 days and 7
    hours look the same.
    """
    repeated = [
        {"convert": {"at": "/days", "factor": 24}},
        {"convert": {"at": "/heat", "factor": 1.8, "offset": 32}},
    ]
    migration = steps(*[step for step in REPEATABLE if step not in repeated])
    new = migration.apply(value)

    assert migration.apply(new) == new


WRAPPED = {
    "version": "2.0.0",
    "input": {
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {"topics": {"type": "array", "items": {"type": "string"}}},
    },
    "migrations": [
        {
            "from": "1.x",
            "to": "2.0.0",
            "accepts": {
                "properties": {"topic": {"type": "string"}},
                "additionalProperties": False,
            },
            "steps": [
                {"wrap": "/topic"},
                {"rename": {"from": "/topic", "to": "/topics"}},
            ],
        }
    ],
}


@pytest.mark.parametrize(
    "text",
    ["['AI', 'b']", '["AI"]', "['AI'", "[AI]", '{"a": 1}', '```["a"]```', "('a', 'b')"],
)
def test_a_container_in_a_text_does_not_become_an_item(text: str) -> None:
    """The whole list would be taken for one topic; a caller that states its version
    means the text.
    """
    contract = Contract.from_dict(WRAPPED)

    with pytest.raises(
        SkillInputError, match="the text at /topic looks like an array or object"
    ):
        contract.accept({"topic": text})
    assert contract.accept({"topic": text}, version="1.0.0").arguments == {
        "topics": [text]
    }


@pytest.mark.parametrize("kind", ["array", ["array", "null"]], ids=str)
def test_a_list_with_commas_for_a_newer_array_does_not_become_an_item(
    kind: Any,
) -> None:
    """It may be two topics of a current caller; null is not a third reading."""
    topics = {"type": kind, "items": {"type": "string"}}
    new = {"properties": {"topics": topics}, "additionalProperties": False}
    old = {"properties": {"topics": {"type": "string"}}, "additionalProperties": False}
    migration = {
        "from": "1.x",
        "to": "2.0.0",
        "accepts": old,
        "steps": [{"wrap": "/topics"}],
    }
    contract = Contract.from_dict(
        {"version": "2.0.0", "input": new, "migrations": [migration]}
    )

    with pytest.raises(SkillInputError):
        contract.accept({"topics": "AI, space"})
    assert contract.accept({"topics": "AI"}).arguments == {"topics": ["AI"]}


@pytest.mark.parametrize("text", ["AI", "[Breaking] news", "a, b", "(why not)"])
def test_another_text_becomes_an_item(text: str) -> None:
    """A bracket in a title does not make it a list."""
    assert Contract.from_dict(WRAPPED).accept({"topic": text}).arguments == {
        "topics": [text]
    }


@pytest.mark.parametrize("value", ["\ud800", float("inf"), {"a": {"\udfff": 1}}])
def test_a_migration_that_json_cannot_express_is_refused(value: Any) -> None:
    """What a step writes into arguments must be JSON, or no engine could judge the
    arguments afterwards.
    """
    with pytest.raises(InvalidSkillError, match="must be JSON, but holds"):
        Migration.from_dict(
            {"to": "2.0.0", "steps": [{"set_default": {"at": "/a", "value": value}}]}
        )


def test_numbers_of_400_digits_are_converted_or_refused() -> None:
    """An integer has no limit in JSON and a float has: neither reading a factor nor a
    text may fail on it.
    """
    migration = Migration.from_dict(
        {
            "to": "2.0.0",
            "steps": [{"convert": {"at": "/n", "from": "string", "to": "number"}}],
        }
    )

    assert migration.apply({"n": "1" + "0" * 400}) == {"n": 10**400}
    for field in ("factor", "divisor", "offset"):
        with pytest.raises(InvalidSkillError, match="must be a number"):
            Migration.from_dict(
                {"to": "2.0.0", "steps": [{"convert": {"at": "/n", field: 10**400}}]}
            )


@pytest.mark.parametrize(
    ("written", "text", "minutes"),
    [("1.50", "1.50", 90), ("2.00", "2", 120), ("2", "2", 120), ("0.10", "0.10", 6)],
)
def test_a_migration_converts_a_number_as_the_model_wrote_it(
    written: str, text: str, minutes: int
) -> None:
    """A number whose spelling a float would change is a decimal until the end of the
    call.
    """
    contract = Contract.from_dict(
        {
            "version": "2.0.0",
            "input": {"properties": {"v": {"type": "string"}, "m": {"type": "number"}}},
            "migrations": [
                {
                    "from": "1.x",
                    "to": "2.0.0",
                    "steps": [
                        {"convert": {"at": "/v", "to": "string"}},
                        {"convert": {"at": "/m", "factor": 60}},
                    ],
                }
            ],
        }
    )

    accepted = contract.accept(
        f'{{"v": {written}, "m": {written}}}', version="1.0.0"
    ).arguments

    assert accepted == {"v": text, "m": minutes}
    assert all(type(value) in (str, int) for value in accepted.values())
