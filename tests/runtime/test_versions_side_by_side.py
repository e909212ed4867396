"""Calling one of several versions of a skill by a range."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import SkillCatalog, discover
from skillruntime.errors import ErrorCode
from skillruntime.runtime import SkillRuntime, callables

SCRIPT = (
    "import json, sys\n"
    "print(json.dumps({'version': %r, 'sent': json.load(sys.stdin)}))\n"
)


@pytest.fixture
def catalog(tmp_path: Path) -> SkillCatalog:
    """A digest in two versions, whose scripts say which they are."""
    for directory, version, parameter in (
        ("digest", "2.0.0", "topics"),
        ("old", "1.2.0", "topic"),
    ):
        path = tmp_path / "skills" / directory
        path.mkdir(parents=True)
        stated = f'metadata:\n  version: "{version}"\n'
        (path / "SKILL.md").write_text(
            f"---\nname: digest\ndescription: News.\n{stated}---\nDo.\n"
        )
        (path / "run.py").write_text(SCRIPT % version)
        schema = {
            "type": "object",
            "required": [parameter],
            "additionalProperties": False,
            "properties": {},
        }
        schema["properties"] = {parameter: {"type": "string"}}
        contract = {"version": version, "run": {"script": "run.py"}, "input": schema}
        (path / "contract.json").write_text(json.dumps(contract))
    return discover(tmp_path / "skills", trusted=True, use_index=False)


@pytest.mark.processes
def test_a_call_runs_the_version_that_the_range_chooses(catalog: SkillCatalog) -> None:
    """With its own contract and its own script; the envelope says which it was."""
    runtime = SkillRuntime(catalog)

    old = runtime.call_sync("digest@^1", {"topic": "AI"})
    new = runtime.call_sync("digest", {"topics": "AI"})
    exact = runtime.call_sync("digest@1.2.0", {"topic": "AI"})

    assert (old.data["version"], new.data["version"], exact.data["version"]) == (
        "1.2.0",
        "2.0.0",
        "1.2.0",
    )
    assert (old.metadata["skill"], old.metadata["version"]) == ("digest@^1", "1.2.0")
    assert runtime.call_sync("digest@^1", {"topics": "AI"}).status == "failed"


def test_a_call_of_an_unmet_range_is_an_envelope(catalog: SkillCatalog) -> None:
    """SKILL_NOT_FOUND, with the versions there are."""
    response = SkillRuntime(catalog).call_sync("digest@^7", {})

    error = response.errors[0]
    assert error.code is ErrorCode.SKILL_NOT_FOUND
    assert error.suggested_action == "Use one of: digest@2.0.0, digest@1.2.0"
    assert error.details == {"versions": ["2.0.0", "1.2.0"]}


@pytest.mark.processes
def test_a_function_runs_the_version_it_was_registered_for(
    catalog: SkillCatalog,
) -> None:
    """The plain name gives the default, ``name@version`` that version, under any
    range.
    """
    runtime = SkillRuntime(catalog)
    assert runtime.call_sync("digest@^1", {"topic": "AI"}).data["version"] == "1.2.0"

    @runtime.implements("digest")
    def newest(arguments: dict[str, Any]) -> str:
        return "new"

    @runtime.implements("digest@1.2.0")
    def oldest(arguments: dict[str, Any]) -> str:
        return "old"

    assert runtime.call_sync("digest@^2", {"topics": "AI"}).data == "new"
    assert runtime.call_sync("digest@^1", {"topic": "AI"}).data == "old"
    assert runtime.call_sync("digest@1.x", {"topic": "AI"}).data == "old"


def test_what_is_kept_of_ranges_is_bounded(
    catalog: SkillCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model may write a new one in every call."""
    monkeypatch.setattr(callables, "_MOST_KEPT", 3)
    runtime = SkillRuntime(catalog)

    for number in range(12):
        name = f"digest@>=1.0.{number},<2"
        assert runtime.contract(name).version == "1.2.0"
        runtime.call_sync(name, {})

    kept = runtime._callables
    assert len(kept._found) <= 3
    assert len(kept._opened) <= 3
    assert len(kept._targets) <= 3


def test_versions_are_activated_beside_each_other_in_a_session(
    catalog: SkillCatalog,
) -> None:
    """Each under its own name, so neither takes the other's place."""
    session = SkillRuntime(catalog).session()

    session.activate("digest")
    session.activate("digest@^1")

    assert list(session.active) == ["digest", "digest@1.2.0"]
