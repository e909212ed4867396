"""The host's variables that a script looks up and does not get: named before the call
where it cannot run without them, and afterwards where it may.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime import ErrorCode, Grants, SkillRuntime, discover
from tests.skill_files import made, write_skill_files

NEEDS = "import os\nprint(os.environ['REPORT_TOKEN'] + os.sys.argv[0][:0])\n"
READS = (
    "import os, sys\n"
    "if not os.environ.get('REPORT_TOKEN'):\n"
    "    sys.exit('it did not work')\n"
    "print('with', len(sys.argv))\n"
)
ALLOWS = "Grants(environment=('REPORT_TOKEN',))"
TRUST = pytest.mark.parametrize("trusted", [True, False])


def runtime_of(
    tmp_path: Path, source: str, *, trusted: bool, path: str = "run.py", **options: Any
) -> SkillRuntime:
    write_skill_files(tmp_path / "skills", "own", "Counts", {f"scripts/{path}": source})
    return SkillRuntime(
        discover(tmp_path / "skills", trusted=trusted),
        approve=lambda request: True,
        workspace=made(tmp_path / "work"),
        **options,
    )


@pytest.fixture
def token(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("REPORT_TOKEN", "secret-of-the-host")
    return "secret-of-the-host"


@TRUST
@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("run.py", NEEDS),
        ("run.sh", '#!/bin/bash\necho "${REPORT_TOKEN:?is needed}${1:-}"\n'),
    ],
)
def test_a_variable_that_each_run_needs_is_named_before_the_call(
    tmp_path: Path, token: str, trusted: bool, path: str, source: str
) -> None:
    """In ``missing()``, in the error, and in how to allow it; the value never."""
    runtime = runtime_of(tmp_path, source, trusted=trusted, path=path)

    (missing,) = runtime.missing("own/run")
    response = runtime.call_sync("own/run", {})

    error = response.errors[0]
    assert (missing.kind, "REPORT_TOKEN" in missing.message) == ("grant", True)
    assert error.code is ErrorCode.ACCESS_DENIED
    assert "REPORT_TOKEN" in error.message
    for action in (missing.action, error.suggested_action):
        assert ALLOWS in action
    assert token not in str(response.to_dict())


@TRUST
@pytest.mark.processes
def test_the_remedy_lets_the_script_run(
    tmp_path: Path, token: str, trusted: bool, sandbox_if_untrusted: None
) -> None:
    """A grant to the skill or to one call, or the host's ``environment``."""
    for options, grants in (
        ({"grants": {"own": Grants(environment=("REPORT_TOKEN",))}}, None),
        ({"environment": ("REPORT_TOKEN",)}, None),
        ({}, Grants(environment=("REPORT_TOKEN",))),
    ):
        runtime = runtime_of(tmp_path, NEEDS, trusted=trusted, **options)

        assert runtime.missing("own/run", grants=grants) == ()
        response = runtime.call_sync("own/run", {}, grants=grants or Grants())
        assert response.status == "success", response.to_dict()
        # It has a secret's name.
        assert token not in str(response.to_dict())


@pytest.mark.processes
def test_a_trusted_script_gets_what_is_not_a_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from a shell; of an untrusted skill it is named."""
    monkeypatch.setenv("REPORT_DIR", "/reports")
    source = '#!/bin/bash\necho "${REPORT_DIR:?}${1:-}"\n'
    trusted = runtime_of(tmp_path, source, trusted=True, path="run.sh")
    untrusted = runtime_of(tmp_path, source, trusted=False, path="run.sh")

    response = trusted.call_sync("own/run", {})

    assert response.data == {"stdout": "/reports"}
    assert (trusted.missing("own/run"), trusted.withheld("own/run")) == ((), ())
    assert "REPORT_DIR" in untrusted.missing("own/run")[0].message


def test_a_variable_that_the_host_lacks_too_is_left_to_the_script(
    tmp_path: Path,
) -> None:
    """Nothing is withheld, and no grant would help."""
    runtime = runtime_of(tmp_path, NEEDS, trusted=True)

    assert runtime.missing("own/run") == ()


@TRUST
@pytest.mark.processes
def test_a_variable_that_is_only_read_stops_no_call(
    tmp_path: Path, token: str, trusted: bool, sandbox_if_untrusted: None
) -> None:
    """It is named after a failure, with how to allow it."""
    runtime = runtime_of(tmp_path, READS, trusted=trusted)

    assert runtime.missing("own/run") == ()
    assert runtime.withheld("own/run") == ("REPORT_TOKEN",)
    error = runtime.call_sync("own/run", {}).errors[0]

    assert error.code is ErrorCode.TOOL_EXECUTION_FAILED
    assert error.details["not_granted"] == {"environment": ["REPORT_TOKEN"]}
    assert "It ran without REPORT_TOKEN" in error.suggested_action
    assert ALLOWS in error.suggested_action


@pytest.mark.processes
def test_nothing_is_said_of_a_variable_that_was_given(
    tmp_path: Path, token: str
) -> None:
    """Neither before nor after a call."""
    grants = {"own": Grants(environment=("REPORT_TOKEN",))}
    source = READS + "sys.exit('after all')\n"
    runtime = runtime_of(tmp_path, source, trusted=True, grants=grants)

    assert runtime.withheld("own/run") == ()
    error = runtime.call_sync("own/run", {}).errors[0]
    assert "REPORT_TOKEN" not in str(error.to_dict())


def test_what_each_login_has_is_not_worth_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``PATH`` is given, and a script that reads ``TERM`` misses nothing; without its
    own directory's variables no script is.
    """
    for name in ("TERM", "USER", "SKILL_DIR"):
        monkeypatch.setenv(name, "x")
    source = (
        "import os, sys\nprint(sys.argv, os.environ['PATH'], os.environ['SKILL_DIR'])\n"
        "print(os.environ.get('TERM'), os.getenv('USER'), os.getenv('SKILL_DIR'))\n"
    )
    runtime = runtime_of(tmp_path, source, trusted=False)

    assert (runtime.missing("own/run"), runtime.withheld("own/run")) == ((), ())


def test_a_function_has_no_variables_to_withhold() -> None:
    """It runs in the host's own process."""

    def halve(number: int) -> float:
        """Halve a number."""
        return number / 2

    assert SkillRuntime(functions=[halve]).withheld("halve") == ()
