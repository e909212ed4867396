"""Words that get in each other's way: what the real parser makes of them is what was
asked, or they are refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv
from skillruntime.errors import SkillInputError
from tests.derive.script_values import SCRIPTS, parsed

pytestmark = pytest.mark.processes


def words_for(script: str, arguments: dict[str, Any]) -> list[str]:
    """Return the words for *arguments*, with the defaults that the contract fills
    in.
    """
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(
        CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted
    )


CASES: list[tuple[str, dict[str, Any]]] = [
    ("a97_list_before_place.py", {"food": [3], "animal": "cat"}),
    (
        "a97_list_before_place.py",
        {"food": [3, -4], "animal": "-c", "slow": False, "v": 0},
    ),
    (
        "a97_list_before_place.py",
        {"food": [], "skip": ["dog"], "animal": "cat", "more": ["a", "b"], "v": 2},
    ),
    ("a63_extend.py", {"take": "c,d", "also": ["x", "y"]}),
    (
        "a75_choices_of_all_kinds.py",
        {
            "letter": "b",
            "row": 5,
            "even": 8,
            "all": "three",
            "both": "one-y",
            "rate": 0.5,
        },
    ),
    (
        "a78_pairs.py",
        {"size": [1, 2], "point": [[1, -2, 3.5], [4, 5, 6]], "corner": [0.5, -1]},
    ),
    ("a22_remainder.py", {"command": "pack", "arguments": ["-x", "--shell", "y"]}),
    ("a22_remainder.py", {"shell": "sh", "command": "pack", "arguments": []}),
    (
        "a98_option_remainder.py",
        {"names": ["a", "b"], "no_slow": True, "run": ["make", "-j", "4"]},
    ),
    ("a84_text_enum.py", {"shape": "square", "colour": "pale-blue", "any": "red"}),
]


@pytest.mark.parametrize(("script", "arguments"), CASES)
@pytest.mark.quick_cases(
    [
        "a97_list_before_place.py-arguments0",
        "a97_list_before_place.py-arguments1",
        "a78_pairs.py-arguments5",
        "a22_remainder.py-arguments7",
        "a84_text_enum.py-arguments9",
    ]
)
def test_the_real_parser_reads_back_what_was_asked(
    script: str, arguments: dict[str, Any], tmp_path: Path
) -> None:
    """A list takes no word that was meant for a place, and what takes all the rest
    comes last.
    """
    values = parsed(script, words_for(script, arguments), tmp_path)

    for name, value in arguments.items():
        assert values[name] == expected_of(script, name, value), name


def expected_of(script: str, name: str, value: Any) -> Any:
    """What the parser stores: as asked, but for converters of the script's own and what
    is added to a default.
    """
    known = {
        ("a63_extend.py", "take"): ["c", "d"],
        ("a63_extend.py", "also"): ["map", "x", "y"],
    }
    return known.get((script, name), value)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("a22_remainder.py", {"command": "-pack", "arguments": ["x"]}),
        ("a22_remainder.py", {"command": "pack", "arguments": ["--", "x"]}),
        ("a98_option_remainder.py", {"names": ["-a"], "run": ["make"]}),
    ],
)
def test_words_before_all_the_rest_that_look_like_flags_are_refused(
    script: str, arguments: dict[str, Any]
) -> None:
    """``--`` would be one of the words that are left (argparse's REMAINDER), so it
    cannot protect them.
    """
    with pytest.raises(SkillInputError):
        words_for(script, arguments)
