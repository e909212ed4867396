"""Scripts that declare their arguments without argparse: what is read of them, checked by running them on the words."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillruntime.contract.command_line import CommandLine, to_argv
from skillruntime.contract.derive import derive
from skillruntime.errors import SkillInputError
from tests.contract.script_values import SCRIPTS, parsed


def words_for(script: str, arguments: dict[str, Any]) -> list[str]:
    """Return the words for *arguments*, accepted by the contract that is derived from *script*, which is whole."""
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    assert derivation.complete
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted)


DECLARED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "c05_classic_types.py",
        {"place": "-p", "scale": 2.5, "style": "hills", "since": "2024-02-29", "size": [3, -4], "key": "--k"},
        {"place": "-p", "scale": 2.5, "style": "hills", "since": "2024-02-29T00:00:00", "size": [3, -4], "key": "--k"},
    ),
    ("c05_classic_types.py", {"place": "p", "key": "k"}, {"scale": 1.0, "style": "plain", "size": [10, 20]}),
    (
        "c06_switches.py",
        {"shout": True, "case": "lower", "verbose": 2, "once": True, "words": ["-a", "b"]},
        {"shout": True, "case": "lower", "verbose": 2, "once": True, "words": ["-a", "b"]},
    ),
    ("c06_switches.py", {}, {"shout": False, "verbose": 0, "once": False, "words": []}),
    ("c07_commands_by_hand.py", {"command": "saw", "length": -3}, {"length": -3}),
    ("c07_commands_by_hand.py", {"command": "hit", "nail": "-n"}, {"nail": "-n"}),
    ("c08_common_decorator.py", {"form": "json", "quiet": True}, {"name": "all", "form": "json", "quiet": True}),
    (
        "t04_literals.py",
        {"name": "-n", "when": "2024-01-31", "share": 1, "loud": True, "tag": ["a", "-b"]},
        {"name": "-n", "when": "2024-01-31T00:00:00", "share": 1.0, "loud": True, "tag": ["a", "-b"]},
    ),
    (
        "t05_callback.py",
        {"command": "plant", "verbose": True, "seed": "-s", "rows": 2, "deep": True},
        {"verbose": True, "seed": "-s", "rows": 2, "deep": True},
    ),
    ("t05_callback.py", {"command": "water", "beds": [3]}, {"litres": 1.0, "beds": [3]}),
    (
        "t06_single.py",
        {"files": ["a", "-b"], "at_least": 3, "secret": "--s"},
        {"files": ["a", "-b"], "at_least": 3, "secret": "--s"},
    ),
]

PRINTED: list[tuple[str, dict[str, Any], str]] = [
    ("b06_long_options.sh", {"wood": "-pine", "doors": "2", "paint": True}, "-pine 2 1"),
    ("b06_long_options.sh", {}, "oak 1 0"),
    ("b07_getopts_places.sh", {"start": "-3", "quiet": True}, "-3 1"),
    ("s06_optional_place.py", {"name": "ab", "count": 2}, "abab"),
    ("s06_optional_place.py", {"name": "-x"}, "-x"),
    ("s07_rest.py", {"file": ["a b", "-c"]}, "a b\n-c"),
    ("s08_unpacked.py", {"left": "l", "right": "$(r)"}, "l $(r)"),
]


@pytest.mark.parametrize(("script", "arguments", "expected"), DECLARED)
def test_click_and_typer_read_back_what_was_asked(
    script: str, arguments: dict[str, Any], expected: dict[str, Any], tmp_path: Path
) -> None:
    """The values that the framework hands to the script's function are those of the call."""
    values = parsed(script, words_for(script, arguments), tmp_path)

    assert {key: values[key] for key in expected} == expected


@pytest.mark.parametrize(("script", "arguments", "expected"), PRINTED)
def test_a_script_that_takes_its_words_itself_gets_them_in_their_places(
    script: str, arguments: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """The script is run, and says what it was given."""
    program = [sys.executable] if script.endswith(".py") else ["bash"]
    command = [*program, str(SCRIPTS / script), *words_for(script, arguments)]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout.strip() == expected


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_what_parse_args_of_node_declares_reaches_it(tmp_path: Path) -> None:
    """Options by their flags, and what stands behind them as a list whose meaning nobody declared."""
    words = words_for("n04_positionals.mjs", {"depth": "3", "only": ["a", "-b"], "positionals": ["x", "-y"]})

    done = subprocess.run(
        ["node", str(SCRIPTS / "n04_positionals.mjs"), *words], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )

    assert "depth: '3'" in done.stdout, done.stderr
    assert "'x', '-y'" in done.stdout


def test_a_usage_line_and_a_parameter_expansion_say_what_may_be_left_out() -> None:
    """``${2:-copy.png}`` is optional, ``${1:?...}`` is not."""
    contract = derive((SCRIPTS / "b05_defaults.sh").read_bytes(), path="scripts/copy.sh")

    assert contract is not None
    with pytest.raises(SkillInputError):
        contract.to_contract().accept({"target": "b.png"})
    assert contract.to_contract().accept({"source": "a.png"}).arguments == {"source": "a.png"}
