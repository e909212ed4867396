"""Arguments to command lines: what the script's own parser makes of the words is what
was asked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv
from skillruntime.derive.command_line import Parameter
from skillruntime.errors import InvalidSkillError, SkillInputError
from tests.derive.script_values import SCRIPTS, parsed

pytestmark = pytest.mark.processes


def words_for(script: str, arguments: dict[str, Any]) -> list[str]:
    """Return the words for *arguments*, accepted by the contract that is derived from
    *script*.
    """
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(
        CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted
    )


CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "a01_plain.py",
        {"input": "a b.txt"},
        {"input": "a b.txt", "output": "out.txt", "limit": 10, "verbose": False},
    ),
    (
        "a01_plain.py",
        {"input": "-dash", "limit": -5, "verbose": True},
        {"input": "-dash", "limit": -5, "verbose": True},
    ),
    (
        "a01_plain.py",
        {"input": "--x", "output": "--verbose"},
        {"input": "--x", "output": "--verbose", "verbose": False},
    ),
    (
        "a01_plain.py",
        {"input": "$(id); `ls`", "output": ""},
        {"input": "$(id); `ls`", "output": ""},
    ),
    (
        "a02_module_level.py",
        {"files": ["a", "-b"], "indent": 4},
        {"files": ["a", "-b"], "indent": 4},
    ),
    (
        "a03_constants.py",
        {"model": "large", "size": 5, "level": "debug"},
        {"model": "large", "size": 5, "level": "debug"},
    ),
    (
        "a04_nargs.py",
        {
            "pair": ["a", "b"],
            "rest": ["c"],
            "point": [1, 2.5, -3],
            "names": ["n"],
            "maybe": "-x",
            "one": ["o"],
        },
        {
            "pair": ["a", "b"],
            "rest": ["c"],
            "point": [1, 2.5, -3],
            "names": ["n"],
            "maybe": "-x",
            "one": ["o"],
        },
    ),
    (
        "a04_nargs.py",
        {"pair": ["-1", "-b"], "names": ["x", "z"]},
        {"pair": ["-1", "-b"], "names": ["x", "z"], "rest": []},
    ),
    (
        "a05_actions.py",
        {
            "tag": ["a", "-b"],
            "pairs": [["k", "v"], ["l", "w"]],
            "ids": [1, 2],
            "v": 3,
            "quiet": True,
            "fast": True,
        },
        {
            "tag": ["a", "-b"],
            "pairs": [["k", "v"], ["l", "w"]],
            "ids": [1, 2],
            "v": 3,
            "loud": False,
            "speed": 5,
        },
    ),
    (
        "a06_boolean_optional.py",
        {"color": False, "cache": True},
        {"color": False, "cache": True, "dry_run": False},
    ),
    (
        "a07_subcommands.py",
        {"command": "add", "name": "-x", "db": "-d"},
        {"command": "add", "name": "-x", "db": "-d"},
    ),
    (
        "a07_subcommands.py",
        {"command": "remove", "ids": [3, -4]},
        {"command": "remove", "ids": [3, -4]},
    ),
    (
        "a08_nested_subcommands.py",
        {"group": "remote", "action": "add", "url": "u", "name": "n", "verbose": True},
        {"group": "remote", "action": "add", "url": "u", "name": "n", "verbose": True},
    ),
    (
        "a10_exclusive.py",
        {"stdin": True, "verbose": True},
        {"stdin": True, "verbose": True, "quiet": False, "depth": 1},
    ),
    (
        "a19_enum.py",
        {"mode": "slow", "color": "green", "rank": 2},
        {"mode": "slow", "color": "green", "rank": 2},
    ),
    (
        "a20_types.py",
        {"flag": "no", "data": {"a": ["b", None]}, "weird": False},
        {"flag": False, "data": {"a": ["b", None]}, "weird": False},
    ),
    (
        "a20_types.py",
        {"weird": True, "size": "2k", "names": "x,y"},
        {"weird": True, "size": 2048, "names": ["x", "y"]},
    ),
    (
        "a27_same_dest.py",
        {"csv": True, "no_wait": True},
        {"output": "csv", "wait": False, "level": 1},
    ),
    (
        "a36_single_dash_long.py",
        {"input": "-i", "scale": -1.5, "n": -2},
        {"input": "-i", "scale": -1.5, "n": -2},
    ),
    (
        "a37_dashed_names.py",
        {"in_file": "f", "maximum": 3, "2d": True},
        {"in-file": "f", "maximum": 3, "2d": True},
    ),
    (
        "a38_optional_positionals.py",
        {"source": "s", "target": "t", "mode": "move"},
        {"target": "t", "mode": "move"},
    ),
    (
        "a47_nargs_sub_mix.py",
        {"command": "convert", "inputs": ["-a", "b"], "to": "pdf", "page": [1, 2]},
        {"page": [1, 2]},
    ),
]


@pytest.mark.parametrize(("script", "arguments", "expected"), CASES)
@pytest.mark.quick_cases(
    [
        "a01_plain.py-arguments0-expected0",
        "a01_plain.py-arguments2-expected2",
        "a04_nargs.py-arguments6-expected6",
        "a07_subcommands.py-arguments10-expected10",
        "a10_exclusive.py-arguments13-expected13",
        "a36_single_dash_long.py-arguments18-expected18",
        "a38_optional_positionals.py-arguments20-expected20",
    ]
)
def test_the_scripts_own_parser_reads_back_what_was_asked(
    script: str, arguments: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    """Whatever a value holds, argparse reads the words as the values that were asked
    for.
    """
    words = words_for(script, arguments)

    values = parsed(script, words, tmp_path)

    assert {key: values[key] for key in expected} == expected


def test_what_equals_the_default_is_left_out() -> None:
    """A default that was filled in changes nothing, so it is not said."""
    assert words_for(
        "a01_plain.py", {"input": "x", "limit": 10, "output": "out.txt"}
    ) == ["x"]


def test_a_flag_that_takes_many_words_does_not_swallow_what_follows() -> None:
    """A flag with as many words as follow comes first, and ``--`` ends it."""
    words = words_for("a04_nargs.py", {"pair": ["a", "b"], "names": ["n", "m"]})

    assert words == ["--names", "n", "m", "--", "a", "b"]


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("a04_nargs.py", {"pair": ["a", "b"], "names": ["-x", "-y"]}, "/names"),
    ("a01_plain.py", {"input": "--"}, "/input"),
    ("a01_plain.py", {"input": "x", "output": "--"}, "/output"),
    ("a04_nargs.py", {"pair": ["a", "--"]}, "/pair"),
    ("a01_plain.py", {"input": "a\0b"}, "/input"),
    ("a01_plain.py", {"input": "x" * 200_000}, "/input"),
    ("a38_optional_positionals.py", {"source": "s", "mode": "move"}, "/target"),
]


@pytest.mark.parametrize(("script", "arguments", "path"), REFUSED)
def test_what_the_parser_would_read_otherwise_is_refused(
    script: str, arguments: dict[str, Any], path: str
) -> None:
    """What cannot be said to this parser is an error of the parameter, never another
    command line.
    """
    with pytest.raises(SkillInputError) as refused:
        words_for(script, arguments)

    assert refused.value.skill_errors[0].details is not None
    assert refused.value.skill_errors[0].details["path"] == path


def test_a_command_line_survives_the_way_through_json() -> None:
    """``from_dict`` undoes ``to_dict``, commands and defaults of null included."""
    inner = CommandLine(
        "click",
        (
            Parameter("n", "--n", default=None),
            Parameter("p", "--p", "values", length=2),
        ),
    )
    line = CommandLine(
        "click", (Parameter("v", "-v", "count", default=0),), "command", {"go": inner}
    )

    assert CommandLine.from_dict(line.to_dict()) == line


@pytest.mark.parametrize(
    "document",
    [
        [],
        {"parser": "perl"},
        {"parameters": [{}]},
        {"parameters": [{"name": "x", "takes": "y"}]},
    ],
)
def test_a_faulty_document_is_refused(document: Any) -> None:
    """A contract file with a wrong ``run.command_line`` is the skill's fault, and said
    so.
    """
    with pytest.raises(InvalidSkillError, match=r"run\.command_line"):
        CommandLine.from_dict(document)
