"""A script's source to its contract: what is read, what is said of it, and that nothing
is run or invented.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.derive import Derivation, derive
from skillruntime.errors import SkillInputError

SCRIPTS = Path(__file__).parent / "scripts"
ALL = sorted(
    path.name
    for path in SCRIPTS.iterdir()
    if path.suffix in (".py", ".sh", ".js", ".mjs")
)


def derived(script: str) -> Derivation:
    """Return what is read of one of the scripts."""
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    return derivation


def properties(source: str, path: str = "s.py") -> dict[str, Any]:
    """Return the parameters that *source* is read to take."""
    derivation = derive(source, path=path)
    assert derivation is not None
    found: dict[str, Any] = derivation.document["input"]["properties"]
    return found


def parser_of(*arguments: str, head: str = "") -> str:
    """Return a script whose parser declares *arguments*."""
    lines = "\n".join(f"p.add_argument({each})" for each in arguments)
    return (
        "import argparse\n"
        f"{head}\n"
        "p = argparse.ArgumentParser()\n"
        f"{lines}\n"
        "p.parse_args()\n"
    )


@pytest.mark.parametrize("script", [name for name in ALL if name != "conftest.py"])
def test_every_script_gives_a_contract_that_loads(script: str) -> None:
    """Whatever is read is a document that ``Contract.from_dict`` takes, and says what
    it was derived from.
    """
    derivation = derived(script)

    contract = derivation.to_contract()

    assert contract.run["script"] == f"scripts/{script}"
    assert derivation.document["derived"]["from"] == f"scripts/{script}"
    assert derivation.document["derived"]["confidence"] in ("high", "medium", "low")


def test_nothing_of_the_script_is_run(tmp_path: Path) -> None:
    """Reading has no effect: not at the top of the module, not in decorators, defaults
    or type functions.
    """
    marker = tmp_path / "marker"
    act = f"open({str(marker)!r}, 'w').close()"
    source = (
        f"import argparse, os\n{act}\ndef t(x, y={act}):\n    {act}\n    return x\n"
        + parser_of("'--x', type=t, default=t(1)", f"'--y', default={act}")
    )

    found = properties(source)

    assert list(found) == ["x", "y"]
    assert not marker.exists()


def test_the_reader_imports_and_evaluates_nothing() -> None:
    """The package names nothing that runs code, imports by name, opens a file or starts
    a process.
    """
    package = Path(derive.__code__.co_filename).parent
    forbidden = {
        "exec",
        "eval",
        "compile",
        "__import__",
        "importlib",
        "open",
        "subprocess",
        "runpy",
    }

    for path in package.glob("*.py"):
        names = {
            node.id
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Name)
        }
        assert not names & forbidden, path


def test_help_becomes_the_description_with_its_default_filled_in() -> None:
    """``%(default)s`` and ``%%`` are expanded as argparse shows them."""
    found = derived("a11_groups.py").document["input"]["properties"]

    assert found["rate"] == {
        "type": "number",
        "description": "From 0 to 1 (default: 0.5), 5% is usual",
        "default": 0.5,
    }


def test_a_path_is_only_what_certainly_is_one() -> None:
    """``type=Path`` and ``FileType`` are paths; an untyped ``--output`` is not."""
    found = derived("a21_file_type.py").document["input"]["properties"]
    plain = derived("a01_plain.py").document["input"]["properties"]

    assert {
        name for name, schema in found.items() if schema.get("format") == "path"
    } == {"infile", "out", "path", "abs"}
    assert "format" not in plain["output"]


def test_a_default_path_outside_the_workspace_is_left_to_the_script() -> None:
    """The model said nothing: a default that cannot be resolved must not make its call
    fail.
    """
    head = "from pathlib import Path"
    found = properties(
        parser_of(
            "'--a', type=Path, default='/etc/x'",
            "'--b', type=Path, default='../x'",
            "'--c', type=Path, default='x/y'",
            head=head,
        )
    )

    assert [found[name].get("default") for name in ("a", "b", "c")] == [
        None,
        None,
        "x/y",
    ]


def test_subcommands_are_a_one_of_with_the_command_as_discriminator() -> None:
    """A call for one command with another's argument is refused; the right one
    passes.
    """
    contract = derived("a07_subcommands.py").to_contract()

    accepted = contract.accept({"command": "remove", "ids": ["3"]})

    assert accepted.arguments["ids"] == [3]
    with pytest.raises(SkillInputError):
        contract.accept({"command": "remove", "ids": [3], "priority": 1})
    with pytest.raises(SkillInputError):
        contract.accept({"ids": [3]})


def test_one_of_an_exclusive_group_is_accepted_and_two_are_not() -> None:
    """A required group needs one; a switch that is off does not count."""
    contract = derived("a10_exclusive.py").to_contract()

    assert contract.accept({"file": "a", "stdin": False}).arguments["file"] == "a"
    for refused in ({"file": "a", "url": "b"}, {"file": "a", "stdin": True}, {}):
        with pytest.raises(SkillInputError):
            contract.accept(refused)


def test_malformed_arguments_are_repaired_by_what_was_derived() -> None:
    """``"5"`` for 5, ``"True"`` for true; a wrong choice is refused by its
    parameter.
    """
    contract = derived("a03_constants.py").to_contract()

    assert contract.accept({"model": "small", "size": "5"}).arguments["size"] == 5
    with pytest.raises(SkillInputError) as refused:
        contract.accept({"model": "smal1", "size": 5})
    assert refused.value.skill_errors[0].details is not None
    assert refused.value.skill_errors[0].details["path"] == "/model"


def test_a_flag_that_says_no_is_named_by_its_flag() -> None:
    """``--quiet`` with ``dest="loud"`` is ``quiet``: what its help speaks of, not what
    it stores.
    """
    found = derived("a05_actions.py").document["input"]["properties"]

    assert found["quiet"] == {"type": "boolean", "default": False}
    assert "loud" not in found


@pytest.mark.parametrize(
    ("argument", "reason"),
    [
        ("*names()", "its name is computed"),
        ("'--x', **options()", "its options are computed"),
        ("'--x', nargs=number()", "the number of its values is computed"),
        ("'--x', action=action()", "its action is computed"),
        (
            "'--x', choices=[1, 2], required=True",
            "none of its choices can be given as text",
        ),
    ],
)
def test_what_cannot_be_read_is_named(argument: str, reason: str) -> None:
    """Nothing is invented: the argument is left out of the schema, and said to be."""
    derivation = derive(parser_of(argument, "'--known'"), path="s.py")

    assert derivation is not None
    assert [each.reason for each in derivation.unread] == [reason]
    assert list(derivation.document["input"]["properties"]) == ["known"]
    assert derivation.confidence == "medium"


def test_a_parser_handed_to_another_module_may_have_more_arguments() -> None:
    """Who cannot be read may have added some, and that is said."""
    derivation = derive(
        parser_of("'--x'").replace("p.parse_args", "common.extend(p)\np.parse_args"),
        path="s.py",
    )
    known = derive(
        "import common\n"
        + parser_of("'--x'").replace("p.parse", "common.extend(p)\np.parse"),
        path="s.py",
    )

    assert derivation is not None
    assert known is not None
    assert [each.argument for each in known.unread] == ["arguments"]
    assert known.unread[0].reason == "common.extend may add some"


BY_HAND = ["s04_by_hand.py", "s30_key_and_value.py", "b04_by_hand.sh"]


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("def broken(:", "s.py"),
        ("VALUE = 1\n", "library.py"),
        ("plain text", "notes.txt"),
        ("export const add = (a, b) => a + b;", "s.js"),
        ("(" * 5000, "s.py"),
        ("x = " + "-" * 5000 + "1\n", "s.py"),
    ],
)
def test_what_is_not_a_readable_script_gives_nothing(source: str, path: str) -> None:
    """A library, a broken file, a library we do not read: no contract is better than a
    wrong one.
    """
    assert derive(source, path=path) is None


COSTLY = [
    "x = 'a' * 10 ** 9",
    "x = 10 ** 10 ** 10",
    "x = '{:>999999999}'.format('a')",
    "x = f'{1:>999999999}'",
    "x = '%999999999d' % 1",
    "x = list(range(10 ** 9))",
    "x = [0]\nfor i in range(60):\n    x = [x, x]\ny = str(x)",
    "x = ['a']\nfor i in range(60):\n    x = x + x",
    "x = ['a']\nfor i in range(400):\n    x.extend(x)",
    "while True:\n    pass",
    "def f(n):\n    return f(n) + f(n)\nf(1)",
    "for a in range(500):\n"
    "    for b in range(500):\n"
    "        for c in range(500):\n"
    "            pass",
    "x = {}\nx['x'] = x\ny = dict(x)\nz = str(x)",
]


@pytest.mark.parametrize("hostile", COSTLY)
def test_a_hostile_script_costs_little(hostile: str) -> None:
    """A hostile script cannot make the reader work without end or fill the memory."""
    derivation = derive(
        f"import argparse\n{hostile}\n" + parser_of("'--x'"), path="s.py"
    )

    assert (
        derivation is None
        or "x" in derivation.document["input"]["properties"]
        or derivation.unread
    )


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_mangled_script_makes_the_reader_raise(data: st.DataObject) -> None:
    """Whatever is cut out of a script, the answer is a derivation or nothing."""
    script = data.draw(st.sampled_from(ALL))
    text = (SCRIPTS / script).read_text()
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))

    derivation = derive(
        text[:start]
        + data.draw(st.sampled_from(["", "x", "(", "'", "*"]))
        + text[end:],
        path=script,
    )

    assert derivation is None or derivation.document["run"]["script"] == script


def test_arguments_that_overwrite_each_other_exclude_each_other() -> None:
    """With one destination the last flag would win: a call with two is refused
    instead.
    """
    contract = derived("a27_same_dest.py").to_contract()

    assert contract.accept({"max": True}).arguments["max"] is True
    with pytest.raises(SkillInputError):
        contract.accept({"max": True, "level": 3})


@pytest.mark.parametrize(
    ("first", "is_shell"),
    [
        ("#!/bin/sh", True),
        ("#!/usr/bin/env sh", True),
        ("#!/bin/dash -e", True),
        ("#!/opt/bash/bin/ruby", False),
        ("#!/usr/share/x/ruby", False),
    ],
)
def test_a_script_without_a_suffix_is_read_by_its_interpreter(
    first: str, is_shell: bool
) -> None:
    """By the whole name of the interpreter, and not by a part of its path."""
    assert (
        "argument_1" in properties(f'{first}\necho "$1"\n', "scripts/go")
    ) is is_shell
