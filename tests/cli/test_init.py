"""``skillruntime init``: what it writes, what it refuses to replace, and what it
says.
"""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from skillruntime.catalog import discover
from skillruntime.cli.init import command

SCRIPT = (
    "import argparse\n"
    "p = argparse.ArgumentParser(description='Counts')\n"
    "p.add_argument('path')\n"
    "p.parse_args()\n"
)


def make_skill(root: Path, *, script: str | None = SCRIPT, head: str = "") -> Path:
    """Write a skill and return its directory."""
    directory = root / "counter"
    (directory / "scripts").mkdir(parents=True)
    (directory / "SKILL.md").write_text(
        f"---\nname: counter\ndescription: Counts words\n{head}---\nBody\n"
    )
    if script is not None:
        (directory / "scripts" / "count.py").write_text(script)
    return directory


def test_the_contract_that_is_written_is_the_one_that_is_read_back(
    tmp_path: Path,
) -> None:
    """After ``init`` the skill has a contract of its own, with the script it runs."""
    directory = make_skill(tmp_path)

    done = CliRunner().invoke(command, [str(directory), "--json"])

    assert done.exit_code == 0, done.output
    contract = discover(tmp_path).activate("counter").contracts["counter"]
    assert contract.run["script"] == "scripts/count.py"
    assert contract.accept({"path": "a.txt"}).arguments == {"path": "a.txt"}
    rules = {each["rule"] for each in json.loads(done.stdout)["diagnostics"]}
    assert rules == {"parameter-no-description"}


def test_what_is_there_is_not_replaced_unasked(tmp_path: Path) -> None:
    """An author's edits are safe; ``--force`` says otherwise."""
    directory = make_skill(tmp_path)
    (directory / "contract.json").write_text('{"input": {}}')

    refused = CliRunner().invoke(command, [str(directory)])
    forced = CliRunner().invoke(command, [str(directory), "--force"])

    assert refused.exit_code == 1
    assert forced.exit_code == 0
    assert (
        json.loads((directory / "contract.json").read_text())["run"]["script"]
        == "scripts/count.py"
    )


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    """``--dry-run`` shows the document and leaves the skill alone."""
    directory = make_skill(tmp_path)

    done = CliRunner().invoke(command, [str(directory), "--dry-run", "--json"])

    assert list(json.loads(done.stdout)["files"]) == ["contract.json"]
    assert not (directory / "contract.json").exists()


def test_a_skill_that_says_nothing_of_what_it_takes_gets_no_file(
    tmp_path: Path,
) -> None:
    """Nothing is invented."""
    directory = make_skill(tmp_path, script=None)

    done = CliRunner().invoke(command, [str(directory)])

    assert done.exit_code == 1
    assert not (directory / "contract.json").exists()
