"""YAML as JSON's types: `skillruntime/catalog/frontmatter/yaml_reader.py`."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import skillruntime
from tests.catalog.parts import YamlFault, load_yaml

PIECES = [
    "k: ",
    "- ",
    "? ",
    "{a: ",
    "[",
    "&a ",
    "*a",
    "<<: ",
    "!!bool ",
    "!!timestamp ",
    "!!int ",
    "!!float ",
    "!!binary ",
    "!!set ",
    "!!omap ",
    "!!value ",
    '""',
    "x",
    "_",
    "0x",
    "1:2",
    "2024-02-31",
    "2024-01-01T00:00:00+99:99",
    ".nan",
    "=",
    "\n",
    "\ud800",
    "\x85",
]


@pytest.mark.parametrize(
    "text",
    [
        "k: !!bool x",
        "k: !!timestamp x",
        'k: !!int ""',
        'k: !!float ""',
        "k: !!int _",
        "k: 2024-02-31",
        "k: 2024-01-01T00:00:00+99:99",
        "k: !!binary \u00e9",
        "k: !!set [a]",
        "k: =",
        "<<: 3",
        "k: .nan",
        "k: .inf",
        "k: \ud800",
        "k: 0x" + "f" * 9_000,
        "a: 1\n---\nb: 2",
        "[" * 300,
    ],
)
def test_what_pyyaml_raises_is_one_fault(text: str) -> None:
    """PyYAML raises KeyError, AttributeError, IndexError and others for values that do
    not fit their tags.
    """
    with pytest.raises(YamlFault):
        load_yaml(text)


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_any_text_is_a_value_or_a_fault(text: str) -> None:
    """The law of the module."""
    try:
        load_yaml(text)
    except YamlFault as fault:
        assert str(fault)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (
            "version: 1.10\nreleased: 2024-01-31",
            {"version": 1.1, "released": "2024-01-31"},
        ),
        ("yes: no", {"true": False}),
        (
            "base: &b {a: 1}\nmore: {<<: *b, c: 2}",
            {"base": {"a": 1}, "more": {"a": 1, "c": 2}},
        ),
        ("", None),
        ("- ~\n- 1:30", [None, 90]),
    ],
)
def test_a_value_has_the_types_of_json(text: str, value: Any) -> None:
    """YAML 1.1 as PyYAML reads it, then JSON: a date is text, and so is every key."""
    assert load_yaml(text) == value


def test_a_long_integer_is_refused_before_it_is_computed() -> None:
    """A number of 300,000 parts in base 60 would take PyYAML minutes."""
    with pytest.raises(YamlFault, match="an integer has more than 4300 characters"):
        load_yaml("k: 1" + ":1" * 300_000)


def test_a_key_that_is_a_date_is_named() -> None:
    """JSON has no such key."""
    with pytest.raises(YamlFault, match="a key is not a text; write it in quotes"):
        load_yaml("2024-01-31: released")


def test_no_other_module_uses_the_yaml_library() -> None:
    """So that no text of a skill reaches it without this module's limits and faults."""
    package = Path(skillruntime.__file__).parent
    importing = []
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module)]
            if any(name.partition(".")[0] in ("yaml", "ruamel") for name in names):
                importing.append(path.relative_to(package).as_posix())

    assert set(importing) == {"catalog/frontmatter/yaml_reader.py"}
