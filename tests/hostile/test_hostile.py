"""Every hostile case against this library at each level, and against a careless loader
as the control.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner

from skillruntime.cli import group
from tests import needs
from tests.hostile import own
from tests.hostile.cases import Case, skill_text
from tests.hostile.kit import all_cases, attacks_page, run_case, write_cases
from tests.hostile.texts import FORGED

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

CASES = all_cases()
SCRIPTS = [case for case in CASES if case.kind == "script"]
OTHERS = [case for case in CASES if case.kind != "script"]
HIDDEN = f"\u200b\U000e0041\ue000\u202e\x1b\r\v\f{FORGED}"
_SECONDS = 60.0  # the kit says 5; a test must pass on a loaded machine


CONTROLS = [
    ("script-read-outside", "leaked"),
    ("script-read-home", "leaked"),
    ("script-read-environment", "leaked"),
    ("script-write-outside", "leaked"),
    ("script-write-skill", "leaked"),
    ("script-change-mode-outside", "leaked"),
    ("script-connect-tcp", "leaked"),
    ("script-connect-unix", "leaked"),
    ("script-connect-abstract", "leaked"),
    ("script-signal-host", "leaked"),
    ("script-daemon", "leaked"),
    ("text-close-tag", "leaked"),
    ("text-new-line", "leaked"),
    ("text-bidi", "leaked"),
    ("text-variation-selectors", "leaked"),
    ("text-megabyte", "leaked"),
    ("file-link", "leaked"),
    ("file-dots", "leaked"),
    ("file-absolute", "leaked"),
    ("file-fifo", "failed"),
    ("schema-pattern-nested", "failed"),
]
"""What becomes of some cases with a careless loader."""

_QUICK = {name for name, _ in CONTROLS} | {
    "script-fork-bomb",
    "script-sleep",
    "script-flood-stderr",
}


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case, id=case.name, marks=[] if case.name in _QUICK else pytest.mark.slow
        )
        for case in SCRIPTS
    ],
)
def test_a_hostile_script_is_contained(
    case: Case, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reaches nothing of the host, leaves nothing behind, and ends; each run tries
    what a careless loader allows.
    """
    monkeypatch.setenv("SKILLRUNTIME_HOSTILE_SANDBOX", level)

    verdict = run_case(case, own, seconds=_SECONDS)

    assert verdict.outcome == "contained", verdict.detail


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            case,
            id=case.name,
            marks=[] if case.name in _QUICK or number % 6 == 0 else pytest.mark.slow,
        )
        for number, case in enumerate(OTHERS)
    ],
)
def test_a_hostile_skill_or_schema_is_contained(case: Case) -> None:
    """It costs its own skill at most: the skill next to it is listed, and no text hides
    or forges anything.

    Each run tries what a careless loader allows and a sixth of the rest.
    """
    verdict = run_case(case, own, seconds=_SECONDS)

    assert verdict.outcome == "contained", verdict.detail


def plain_loader() -> ModuleType:
    """Return the careless loader."""
    spec = importlib.util.spec_from_file_location(
        "plain_loader", Path(__file__).with_name("plain_loader.py")
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("name", "outcome"), CONTROLS)
@pytest.mark.quick_cases(
    [
        "script-read-outside-leaked",
        "script-daemon-leaked",
        "text-close-tag-leaked",
        "file-dots-leaked",
    ]
)
def test_the_kit_sees_what_gets_through(name: str, outcome: str) -> None:
    """Against a loader without care the same cases leak or hang: the kit can fail."""
    (case,) = (case for case in CASES if case.name == name)

    # What never ends is given less time: it is the same verdict.
    assert (
        run_case(
            case, plain_loader(), seconds=1.0 if outcome == "failed" else _SECONDS
        ).outcome
        == outcome
    )


@pytest.mark.slow
def test_the_manifest_names_every_case(tmp_path: Path) -> None:
    """At least 80 skills and 40 schemas and payloads, each with its attack and what
    must happen.
    """
    manifest = json.loads(write_cases(tmp_path).read_text("utf-8"))

    assert len({entry["name"] for entry in manifest}) == len(manifest)
    assert sum(entry["kind"] in ("script", "skill") for entry in manifest) >= 80
    assert sum(entry["kind"] == "schema" for entry in manifest) >= 40
    assert all(entry["attack"] and entry["expected"] for entry in manifest)
    assert (tmp_path / "skills" / "script-fork-bomb" / "scripts" / "run.py").is_file()


@pytest.mark.parametrize(
    "contract",
    [
        {HIDDEN: HIDDEN},
        {"requires": {HIDDEN: [HIDDEN]}},
        {"input": {"patternProperties": {HIDDEN: {}}}},
        {"input": {"properties": {"a": {"pattern": HIDDEN}}}},
    ],
    ids=["key", "requirement", "pattern of keys", "pattern"],
)
def test_a_finding_of_validate_hides_and_forges_nothing(
    tmp_path: Path, contract: dict[str, Any]
) -> None:
    """It quotes the keys of a contract, on one line and in characters that a person
    sees.
    """
    directory = tmp_path / "sample"
    directory.mkdir()
    (directory / "SKILL.md").write_text(skill_text("sample"), "utf-8")
    (directory / "contract.json").write_text(
        json.dumps({"version": "1.0.0", "input": {}, **contract}), "utf-8"
    )

    output = CliRunner().invoke(group, ["validate", str(directory)]).output

    assert not set(output) & set(HIDDEN.removesuffix(FORGED))
    assert not any(line.startswith(FORGED) for line in output.splitlines())


def test_the_page_lists_every_case() -> None:
    """docs/security-attacks.md is what the kit prints."""
    page = (Path(__file__).parents[2] / "docs" / "security-attacks.md").read_text(
        "utf-8"
    )

    assert page == attacks_page()
