"""``--env``: `skillruntime/cli/inputs/granted_variables.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.in_process import run_command

pytestmark = pytest.mark.processes  # `call` starts the launcher of scripts


def commands(directory: Path) -> list[list[str]]:
    """Return the commands that grant variables, with nothing to run."""
    place = str(directory)
    return [["call", "no-such-skill", "--skills", place], ["test", place]]


@pytest.mark.parametrize("number", [0, 1], ids=["call", "test"])
def test_a_granted_variable_that_is_not_set_is_named(
    number: int, tmp_path: Path
) -> None:
    """A mistyped name would have no effect; one that is set, also to nothing, is
    granted in silence.
    """
    command = commands(tmp_path)[number]
    names = ["--env", "THE_TOKEN", "--env", "THE_TOKN"]

    ran = run_command(*command, *names, THE_TOKEN="")

    assert [line for line in ran.stderr.splitlines() if "warning" in line] == [
        "warning: --env THE_TOKN: this variable is not set, so no script gets it"
    ]
    assert "warning" not in ran.stdout


@pytest.mark.parametrize("number", [0, 1], ids=["call", "test"])
def test_the_value_of_a_variable_is_not_an_option(number: int, tmp_path: Path) -> None:
    """Other programs take it there, where every user of the machine can read it; the
    message does not repeat it.
    """
    command = commands(tmp_path)[number]

    ran = run_command(*command, "--env", "THE_TOKEN=s3cret")

    assert ran.exit_code == 2
    assert "'--env': give the name 'THE_TOKEN' alone" in ran.stderr
    assert "s3cret" not in ran.stderr + ran.stdout
