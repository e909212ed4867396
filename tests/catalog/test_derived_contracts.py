"""The scripts of a skill as tools: which are read, under which names, and from nowhere
else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import Skill, discover
from skillruntime.catalog.contracts import derived_contracts as derived
from skillruntime.catalog.contracts.derived_contracts import derive_scripts
from tests.skill_files import write_skill_files

PARSER = (
    "import argparse\n"
    "{head}\n"
    "p = argparse.ArgumentParser()\n"
    "p.add_argument('--x', choices={choices})\n"
    "p.parse_args()\n"
)


def skill_with(root: Path, files: dict[str, str]) -> Skill:
    """Return an activated skill with these files."""
    write_skill_files(root, "tool-box", "Tools", files)
    return discover(root).activate("tool-box")


def test_every_script_is_a_tool_and_modules_are_not(tmp_path: Path) -> None:
    """Tests, packages' files, libraries and assets are left out; two of the same name
    get different names.
    """
    script = PARSER.format(head="", choices="['a']")
    paths = [
        "scripts/make_it.py",
        "scripts/sub/make-it.py",
        "run.py",
        "scripts/test_it.py",
        "assets/x.py",
    ]

    skill = skill_with(
        tmp_path, dict.fromkeys(paths, script) | {"scripts/common.py": "X = 1\n"}
    )

    found = derive_scripts(skill.resources(), skill.read_resource_bytes)

    assert {name: each.document["run"]["script"] for name, each in found.items()} == {
        "run": "run.py",
        "make-it": "scripts/make_it.py",
        "make-it-2": "scripts/sub/make-it.py",
    }


def test_a_script_that_fails_to_parse_affects_only_its_own_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is logged; the skill and its other scripts are there."""
    script = PARSER.format(head="", choices="['a']")
    skill = skill_with(
        tmp_path, {"scripts/bad.py": script, "scripts/good.py": script + "# good\n"}
    )
    real = derived.derive_known

    def breaking(source: bytes, **options: Any) -> Any:
        if b"good" not in source:
            raise TypeError("a fault of the reader")
        return real(source, **options)

    monkeypatch.setattr(derived, "derive_known", breaking)

    assert list(skill.contracts) == ["tool-box/good"]
    assert "no contract could be derived for the script tool-box/bad" in caplog.text


def test_a_large_file_is_not_a_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is data or a bundle; reading it would take too long."""
    script = PARSER.format(head="", choices="['a']")
    monkeypatch.setattr(derived, "MAX_SCRIPT_BYTES", len(script))

    skill = skill_with(
        tmp_path, {"scripts/small.py": script, "scripts/large.py": script + "\n"}
    )

    assert list(skill.contracts) == ["tool-box/small"]


def test_a_module_outside_the_skill_is_never_read(tmp_path: Path) -> None:
    """A link out of the skill's directory is not followed."""
    (tmp_path / "elsewhere.py").write_text("MODES = ['secret']\n")
    skill = skill_with(
        tmp_path,
        {
            "scripts/go.py": PARSER.format(
                head="from common import MODES", choices="MODES"
            )
        },
    )
    (skill.directory / "scripts" / "common.py").symlink_to(tmp_path / "elsewhere.py")

    found = derive_scripts(skill.resources(), skill.read_resource_bytes)

    assert "enum" not in found["go"].document["input"]["properties"]["x"]
    assert [each.argument for each in found["go"].unread] == ["--x"]
