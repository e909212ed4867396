"""Locked environments of scripts: `skillruntime/runtime/scripts/environments.py`, with
uv and a local index.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.errors import InvalidSkillError, ToolNotAvailableError
from skillruntime.runtime import SkillRuntime
from skillruntime.runtime.scripts.environments import environment_of, prepare_script
from tests import needs

pytestmark = pytest.mark.processes

WriteSkill = Callable[..., SkillCatalog]

SOURCE = (
    '# /// script\n# dependencies = ["tinydep>=1"]\n# ///\nimport json, sys, tinydep\n'
    'print(json.dumps({"value": tinydep.VALUE, "prefix": sys.prefix}))\n'
)


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """The path of uv, with caches of its own and no index on the network."""
    path = needs.program("uv")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return path


def write_wheel(directory: Path, version: str = "1.0", value: int = 42) -> None:
    """Write a wheel of one module."""
    directory.mkdir(exist_ok=True)
    information = f"tinydep-{version}.dist-info"
    with zipfile.ZipFile(
        directory / f"tinydep-{version}-py3-none-any.whl", "w"
    ) as wheel:
        wheel.writestr("tinydep.py", f"VALUE = {value}\n")
        wheel.writestr(
            f"{information}/METADATA",
            f"Metadata-Version: 2.1\nName: tinydep\nVersion: {version}\n",
        )
        tag = (
            "Wheel-Version: 1.0\n"
            "Generator: test\n"
            "Root-Is-Purelib: true\n"
            "Tag: py3-none-any\n"
        )
        wheel.writestr(f"{information}/WHEEL", tag)
        wheel.writestr(f"{information}/RECORD", "")


def lock(uv: str, script: Path, wheels: Path) -> None:
    """Lock the script against the directory of wheels, as an author does."""
    command = [
        uv,
        "lock",
        "--quiet",
        "--script",
        script,
        "--no-index",
        "--find-links",
        wheels,
    ]
    subprocess.run([*command, "--python", sys.executable], check=True, cwd=wheels)


@pytest.fixture
def locked(write_skill: WriteSkill, tmp_path: Path, uv: str) -> SkillCatalog:
    """An untrusted skill whose script has a lock."""
    catalog = write_skill(SOURCE, trusted=False)
    write_wheel(tmp_path / "wheels")
    lock(uv, tmp_path / "skills" / "sample" / "scripts" / "run.py", tmp_path / "wheels")
    return catalog


def test_a_script_without_a_lock_names_the_command_that_makes_one(
    write_skill: WriteSkill,
) -> None:
    """It is not ready, and says so before the call and in it."""
    runtime = SkillRuntime(write_skill(SOURCE))

    (missing,) = runtime.missing("sample")
    response = runtime.call_sync("sample", {})

    assert (
        missing.message
        == "it needs tinydep>=1, which is not installed, and has no lock"
    )
    assert "uv lock --script scripts/run.py" in missing.action
    assert response.errors is not None
    assert "uv lock --script scripts/run.py" in (
        response.errors[0].suggested_action or ""
    )


@pytest.mark.usefixtures("some_sandbox")
def test_a_prepared_script_runs_in_the_sandbox_with_its_packages(
    locked: SkillCatalog, uv: str
) -> None:
    """Offline, with the interpreter of its environment, which it cannot change."""
    runtime = SkillRuntime(locked, approve=lambda request: True)
    before = [each.message for each in runtime.missing("sample")]

    python = prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)
    response = runtime.call_sync("sample", {})

    assert before == ["it needs tinydep>=1, and its environment is not prepared"]
    assert runtime.missing("sample") == ()
    assert response.data == {"value": 42, "prefix": str(python.parents[1])}, (
        response.errors
    )
    assert response.metadata is not None
    assert response.metadata["sandbox"] != "none"


def test_the_environment_is_read_only_for_the_script(
    locked: SkillCatalog, write_skill: WriteSkill, uv: str, level: str, tmp_path: Path
) -> None:
    """One script cannot change what the next one imports."""
    python = prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)
    script = tmp_path / "skills" / "sample" / "scripts" / "run.py"
    script.write_text(SOURCE + "open(tinydep.__file__, 'a').write('VALUE = 1')\n")

    response = SkillRuntime(
        locked, approve=lambda request: True, sandbox=level
    ).call_sync("sample", {})

    assert response.status == "failed"
    (module,) = python.parents[1].rglob("tinydep.py")
    assert module.read_text() == "VALUE = 42\n"


def test_a_trusted_script_uses_its_environment_too(
    locked: SkillCatalog, write_skill: WriteSkill, uv: str
) -> None:
    """As a plain process."""
    catalog = write_skill(SOURCE, trusted=True)
    prepare_script(catalog.activate("sample"), "scripts/run.py", uv=uv)

    assert SkillRuntime(catalog).call_sync("sample", {}).data["value"] == 42


def test_another_lock_is_another_environment(
    locked: SkillCatalog, uv: str, tmp_path: Path
) -> None:
    """What was prepared for one edition of the lock is not used for the next."""
    skill = locked.activate("sample")
    script = tmp_path / "skills" / "sample" / "scripts" / "run.py"
    first = prepare_script(skill, "scripts/run.py", uv=uv)
    write_wheel(tmp_path / "wheels", "1.1", 43)
    Path(f"{script}.lock").unlink()
    lock(uv, script, tmp_path / "wheels")
    between = environment_of(Path(f"{script}.lock").read_bytes())

    second = prepare_script(skill, "scripts/run.py", uv=uv)

    assert between is None
    assert first != second
    assert (
        prepare_script(skill, "scripts/run.py", uv="no-such-uv") == second
    )  # nothing to build


def test_a_stale_lock_is_refused(locked: SkillCatalog, uv: str, tmp_path: Path) -> None:
    """The script declares more than was locked."""
    script = tmp_path / "skills" / "sample" / "scripts" / "run.py"
    script.write_text(SOURCE.replace('"tinydep>=1"', '"tinydep>=1", "other-package"'))

    with pytest.raises(ToolNotAvailableError, match="other-package was not found"):
        prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)


@pytest.mark.parametrize(
    "source",
    [
        '{ directory = "../evil" }',
        '{ git = "https://example.com/evil" }',
        '{ editable = "." }',
        '{ path = "a.tar.gz" }',
    ],
)
def test_a_lock_that_would_build_something_is_refused(
    locked: SkillCatalog, uv: str, tmp_path: Path, source: str
) -> None:
    """Building a package runs its code, outside any sandbox."""
    path = tmp_path / "skills" / "sample" / "scripts" / "run.py.lock"
    text = path.read_text()
    start = text.index("source = ")
    path.write_text(text[:start] + f"source = {source}\n")

    with pytest.raises(
        InvalidSkillError, match="somewhere other than an index of wheels"
    ):
        prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)


def test_a_failed_build_leaves_nothing_and_says_why(
    locked: SkillCatalog, uv: str, tmp_path: Path
) -> None:
    """The wheel is gone from the index."""
    shutil.rmtree(tmp_path / "wheels")

    with pytest.raises(
        ToolNotAvailableError, match="uv could not build the environment"
    ):
        prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)

    assert list((tmp_path / "cache" / "skillruntime" / "environments").iterdir()) == []


def test_without_uv_the_error_says_how_to_get_it(locked: SkillCatalog) -> None:
    """It is needed only to prepare."""
    with pytest.raises(ToolNotAvailableError, match=r"'no-such-uv'.*is not installed"):
        prepare_script(locked.activate("sample"), "scripts/run.py", uv="no-such-uv")


def test_an_environment_that_another_process_finished_first_is_used(
    locked: SkillCatalog, uv: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both built it from the same lock; the second one is thrown away."""
    rename = Path.rename

    def late(self: Path, target: Path) -> Path:
        shutil.copytree(self, target, symlinks=True)
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", late)

    python = prepare_script(locked.activate("sample"), "scripts/run.py", uv=uv)

    assert python.exists()
    assert [each.name for each in python.parents[2].iterdir()] == [
        python.parents[1].name
    ]
