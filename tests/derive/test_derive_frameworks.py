"""Scripts that declare their arguments without argparse: what is read of them, checked
by running them on the words.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv
from skillruntime.errors import SkillInputError
from tests.derive.script_values import SCRIPTS


def words_for(script: str, arguments: dict[str, Any]) -> list[str]:
    """Return the words for *arguments*, accepted by the contract that is derived from
    *script*, which is whole.
    """
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    assert derivation.complete
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(
        CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted
    )


PRINTED: list[tuple[str, dict[str, Any], str]] = [
    (
        "b06_long_options.sh",
        {"wood": "-pine", "gates": "2", "paint": True},
        "-pine 2 1",
    ),
    ("b06_long_options.sh", {}, "oak 1 0"),
    ("b07_getopts_places.sh", {"start": "-3", "quiet": True}, "-3 1"),
    ("b02_case_loop.sh", {"target": "-t", "dry_run": True}, "-t|true"),
    ("b03_places.sh", {"input": "i", "output": "-o"}, "i|-o|800"),
    ("b08_places_in_use.sh", {"left": "-l", "right": "$(r)"}, "-l meets $(r)"),
    ("b09_choice.sh", {"argument_1": "shut"}, "bang"),
    ("b10_each.sh", {"bed": "b", "seed": ["x y", "-z"]}, "b: x y\nb: -z"),
    ("b11_main.sh", {"wall": "-w"}, "[white] -w\ndone"),
    ("b11_main.sh", {"wall": "w", "colour": "red"}, "[red] w\ndone"),
    (
        "b12_loop_with_places.sh",
        {"tape": True, "mark": ["-m", "n"], "boxes": ["a", "b"]},
        "1|a b|-m n",
    ),
    ("b13_getopts_then_place.sh", {"loud": True, "argument_1": "-x"}, "1 -x"),
]


@pytest.mark.processes
@pytest.mark.parametrize(("script", "arguments", "expected"), PRINTED)
def test_a_script_that_takes_its_words_itself_gets_them_in_their_places(
    script: str, arguments: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """The script is run, and says what it was given."""
    program = [sys.executable] if script.endswith(".py") else ["bash"]
    command = [*program, str(SCRIPTS / script), *words_for(script, arguments)]

    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )

    assert done.stdout.strip() == expected


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("b15_word_decides.sh", "a word decides what follows"),
        ("b16_optional_switch.sh", "the script takes its words apart by hand"),
    ],
)
def test_what_a_shell_script_takes_apart_by_hand_is_named(
    script: str, reason: str
) -> None:
    """Skip rather than guess."""
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")

    assert derivation is not None
    assert [each.reason for each in derivation.unread] == [reason]


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("b08_places_in_use.sh", {"left": "l"}),
        ("b09_choice.sh", {"argument_1": "lift"}),
        ("b10_each.sh", {}),
        ("b11_main.sh", {"colour": "red"}),
        ("b12_loop_with_places.sh", {"boxes": ["--tape"]}),
    ],
)
def test_what_a_shell_script_would_not_take_is_refused_before_it_runs(
    script: str, arguments: dict[str, Any]
) -> None:
    """A word that is missing, is not a choice of its ``case``, or would be read as a
    flag.
    """
    with pytest.raises(SkillInputError):
        words_for(script, arguments)


SHELL: list[tuple[str, dict[str, Any] | None, bool]] = [
    ('exec ls "$@"', None, False),
    ('cmd="$1"\nshift\n"$cmd" "$@"', None, False),
    ('while [ $# -gt 0 ]; do\n  echo "$1"\n  shift\ndone', None, False),
    ("awk '{ print $1 }' file", {}, True),
    ("cat <<'END'\n$1 costs\nEND", {}, True),
    (
        "cat <<END\n$1 costs\nEND",
        {"argument_1": {"type": "string", "description": "Word 1"}},
        True,
    ),
    ('say() {\n  echo "$1"\n}\nsay hello', {}, True),
    (
        '[ -n "$1" ] && echo "$1"',
        {"argument_1": {"type": "string", "description": "Word 1"}},
        True,
    ),
    (
        "while read -r line; do\n"
        '  case "$line" in\n'
        "    -a) echo a ;;\n"
        "  esac\n"
        'done < "$1"',
        {"argument_1": {"type": "string", "description": "Word 1"}},
        True,
    ),
    ('echo "$2"', None, False),
]


@pytest.mark.parametrize(("body", "expected", "whole"), SHELL)
def test_only_the_words_of_the_shell_script_itself_are_read(
    body: str, expected: dict[str, Any] | None, whole: bool
) -> None:
    """The places of functions, of awk and of quoted texts are not the script's; unread
    words become one list.
    """
    derivation = derive(f"#!/bin/sh\n{body}\n", path="s.sh")

    assert derivation is not None
    found = derivation.document["input"]["properties"]
    assert expected is None or found == expected
    assert derivation.complete is whole


def test_a_usage_line_and_a_parameter_expansion_say_what_may_be_left_out() -> None:
    """``${2:-copy.png}`` is optional, ``${1:?...}`` is not."""
    contract = derive(
        (SCRIPTS / "b05_defaults.sh").read_bytes(), path="scripts/copy.sh"
    )

    assert contract is not None
    with pytest.raises(SkillInputError):
        contract.to_contract().accept({"target": "b.png"})
    assert contract.to_contract().accept({"source": "a.png"}).arguments == {
        "source": "a.png",
        "target": "copy.png",
    }
