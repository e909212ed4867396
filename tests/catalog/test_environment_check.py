"""The usual directories, and unmet requirements."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillruntime.catalog import discover
from skillruntime.catalog.checks.environment_check import Surroundings, unmet, unmet_of
from skillruntime.errors import SkillNotFoundError
from tests.catalog.conftest import WriteSkill

HERE = Surroundings(
    find_command={"git": "/usr/bin/git"}.get,
    environment={"TOKEN": "x"},
    package_version={"pypdf": "6.1"}.get,
    platform="linux",
    runtime="1.4.0",
)


@pytest.mark.parametrize(
    ("requires", "expected"),
    [
        (
            {
                "commands": ["git"],
                "env": "TOKEN",
                "packages": ["pypdf>=6"],
                "os": "linux",
                "runtime": "^1.0.0",
            },
            (),
        ),
        ({"bins": "git, jq"}, ("the command jq is not installed",)),
        ({"environment": ["KEY"]}, ("the environment variable KEY is not set",)),
        (
            {"packages": ["feedparser"]},
            ("the Python package feedparser is not installed",),
        ),
        (
            {"packages": ["pypdf<6"]},
            ("the Python package pypdf is 6.1, but <6 is required",),
        ),
        ({"packages": ["pypdf; python_version < '3'"]}, ()),
        (
            {"packages": ["!!"]},
            ("it requires the package '!!', which is not a valid requirement",),
        ),
        (
            {"platform": ["macOS", "win32"]},
            ("it runs on macos, windows, but this platform is linux",),
        ),
        (
            {"runtime": ">=2.0.0"},
            ("it requires the runtime >=2.0.0, but this is 1.4.0",),
        ),
        (
            {"runtime": "soon"},
            ("it requires the runtime 'soon', which is not a valid version range",),
        ),
        ({"tools": ["web_search"], "commands": 3}, ()),
    ],
)
def test_unmet_requirements_are_reported(
    requires: dict[str, object], expected: tuple[str, ...]
) -> None:
    """One sentence for each thing; what only the host can know is left to it."""
    assert unmet(requires, HERE) == expected


def test_a_skill_states_requirements_in_several_places(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """Frontmatter, metadata and contracts; each missing thing is reported once."""
    text = (
        "---\n"
        "name: a\n"
        "description: b\n"
        "requires:\n"
        "  bins: [jq]\n"
        "metadata:\n"
        "  requires:\n"
        "    env: KEY\n"
        "---\n"
    )
    directory = write_skill("a", text=text)
    (directory / "contract.json").write_text(
        '{"requires": {"commands": ["jq"], "platform": "macos"}}'
    )

    assert unmet_of(discover(tmp_path / "skills").activate("a"), HERE) == (
        "the command jq is not installed",
        "the environment variable KEY is not set",
        "it runs on macos, but this platform is linux",
    )


def test_the_catalog_reports_unmet_requirements(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """On request, not at discovery: the contract's and the frontmatter's requirements,
    and the runtime range.
    """
    text = (
        "---\nname: pdf\ndescription: Reads.\nrequires:\n  commands: git no-such\n---\n"
    )
    directory = write_skill("pdf", text=text)
    write_skill("plain")
    catalog = discover(tmp_path / "skills")
    document = (
        '{"requires": {"env": "TOKEN, OTHER", "runtime": ">=2.0.0"}, "input": '
        '{"type": "object"}}'
    )
    (directory / "contract.json").write_text(document)

    assert catalog.unmet("plain") == ()
    assert catalog.unmet("pdf", HERE) == (
        "the command no-such is not installed",
        "the environment variable OTHER is not set",
        "it requires the runtime >=2.0.0, but this is 1.4.0",
    )
    assert list(
        catalog.select(where=lambda skill: not catalog.unmet(skill.name, HERE))
    ) == ["plain"]
    with pytest.raises(SkillNotFoundError):
        catalog.unmet("nothing")
