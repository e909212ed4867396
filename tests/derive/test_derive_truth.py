"""What is read of an argparse script is what its own parser says, asked in a process of
its own.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.derive_truth import ask, compare
from skillruntime.derive import derive

pytestmark = pytest.mark.processes

SCRIPTS = Path(__file__).parent / "scripts"
ARGPARSE = sorted(path.name for path in SCRIPTS.glob("a*.py"))


@pytest.mark.parametrize("script", ARGPARSE)
@pytest.mark.quick_cases(
    [
        "a01_plain.py",
        "a07_subcommands.py",
        "a09_loop_of_commands.py",
        "a10_exclusive.py",
        "a21_file_type.py",
        "a24_import_alias.py",
        "a27_same_dest.py",
        "a29_set_defaults.py",
        "a31_computed_choices.py",
        "a36_single_dash_long.py",
        "a38_optional_positionals.py",
        "a39_async_main.py",
        "a41_partial_help.py",
        "a46_unknown_loop.py",
        "a71_count_constants.py",
        "a72_aliases.py",
        "a83_required_one_of.py",
        "a97_list_before_place.py",
    ]
)
def test_every_argument_is_read_as_the_real_parser_declares_it(script: str) -> None:
    """Flags, arity, types, choices, defaults and what is required agree; what does not
    is reported as unread.
    """
    path = SCRIPTS / script
    truth = ask(path)
    derivation = derive(path.read_bytes(), path=f"scripts/{script}")

    assert truth is not None
    assert derivation is not None
    missing, wrong = compare(truth, dict(derivation.document))
    is_list = derivation.document["run"]["command_line"]["parser"] == "places"
    assert is_list or wrong == []
    assert missing == [] or not derivation.complete
    derivation.to_contract()
