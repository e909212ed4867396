"""Where a trusted skill and the workspace lie, as a model is shown it that has a shell
beside the skills.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime import SkillRuntime, discover
from skillruntime.runtime.presentation.skill_directory import SkillDirectory
from tests.skill_files import made, write_skill_files

BODY = (
    "Run {baseDir}/scripts/a.sh, ${CLAUDE_SKILL_DIR}/b, `${SKILL_DIR}/c` and "
    "$SKILL_ROOT/d.\n"
    "The plugin: ${CLAUDE_PLUGIN_ROOT}/x.\n"
)


def write(root: Path, body: str = BODY, **files: str) -> Path:
    text = f"---\nname: own\ndescription: Counts\n---\n{body}"
    return write_skill_files(root, "own", "Counts", {"SKILL.md": text, **files})


def loaded(runtime: SkillRuntime, **options: Any) -> str:
    with runtime.session(**options) as session:
        return session.activate("own")


def test_the_model_is_shown_where_a_trusted_skill_lies(tmp_path: Path) -> None:
    """One line for the skill and one for the workspace, if the host named one."""
    directory = write(tmp_path / "skills")
    work = made(tmp_path / "work")
    runtime = SkillRuntime(discover(tmp_path / "skills", trusted=True), workspace=work)

    lines = loaded(runtime).splitlines()

    assert f"Directory: {directory}" in lines
    assert f"Workspace: {work}" in lines


def test_a_directory_named_relatively_is_shown_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell may be somewhere else."""
    directory = write(tmp_path / "skills")
    monkeypatch.chdir(tmp_path)
    made(tmp_path / "work")
    runtime = SkillRuntime(discover("skills", trusted=True), workspace="work")

    text = loaded(runtime)

    assert f"Directory: {directory}\nWorkspace: {tmp_path / 'work'}" in text


@pytest.mark.parametrize(
    ("trusted", "tell", "named", "shown"),
    [
        (True, None, True, True),
        (True, None, False, False),
        (True, True, False, True),
        (True, False, True, False),
        (False, None, True, False),
        (False, True, True, False),
    ],
)
def test_the_host_decides_for_trusted_skills_alone(
    tmp_path: Path, trusted: bool, tell: bool | None, named: bool, shown: bool
) -> None:
    """By default where it named the workspace; of an untrusted skill never."""
    write(tmp_path / "skills", **{"more.md": BODY})
    runtime = SkillRuntime(
        discover(tmp_path / "skills", trusted=trusted),
        workspace=made(tmp_path / "work") if named else None,
        tell_directories=tell,
    )

    with runtime.session() as session:
        texts = (session.activate("own"), session.read_resource("own", "more.md"))

    for text in texts:
        assert (str(tmp_path) in text) is shown
        assert ("{baseDir}" in text) is not shown
    assert ("Directory: " in texts[0]) is shown


def test_the_workspace_of_a_session_counts_as_named(tmp_path: Path) -> None:
    """Of a host with one workspace for each conversation."""
    write(tmp_path / "skills")
    runtime = SkillRuntime(discover(tmp_path / "skills", trusted=True))

    assert f"Workspace: {tmp_path / 'a'}" in loaded(
        runtime, workspace=made(tmp_path / "a")
    )
    assert "Workspace: " not in loaded(
        runtime, workspace=made(tmp_path / "a"), tell_directories=False
    )


def test_the_variables_of_a_text_are_filled(tmp_path: Path) -> None:
    """In the instructions and in a file that is read, repeated or started by a person;
    the plugin's stays where there is none.
    """
    directory = write(tmp_path / "skills", **{"more.md": BODY})
    runtime = SkillRuntime(
        discover(tmp_path / "skills", trusted=True), workspace=made(tmp_path / "work")
    )
    expected = (
        f"Run {directory}/scripts/a.sh, {directory}/b, `{directory}/c` and "
        f"{directory}/d.\n"
        "The plugin: ${CLAUDE_PLUGIN_ROOT}/x."
    )

    with runtime.session() as session:
        assert expected in session.activate("own")
        assert expected in session.render_again("own")
        assert expected in session.read_resource("own", "more.md")
        assert expected in session.invoke("own", "now")


def test_the_plugin_is_the_nearest_directory_above(tmp_path: Path) -> None:
    """That which has ``.claude-plugin/``."""
    (tmp_path / ".claude-plugin").mkdir()
    (tmp_path / "inner" / ".claude-plugin").mkdir(parents=True)
    write(tmp_path / "inner" / "skills")
    runtime = SkillRuntime(
        discover(tmp_path / "inner" / "skills", trusted=True), workspace=tmp_path
    )

    assert f"The plugin: {tmp_path / 'inner'}/x." in loaded(runtime)


def test_what_a_person_typed_is_not_filled(tmp_path: Path) -> None:
    """Only the skill's own text names its directory so."""
    write(tmp_path / "skills", "Say $ARGUMENTS.\n")
    runtime = SkillRuntime(
        discover(tmp_path / "skills", trusted=True), workspace=made(tmp_path / "work")
    )

    with runtime.session() as session:
        assert "Say {baseDir}." in session.invoke("own", "{baseDir}")


FORMS = [
    ("{baseDir}/a.py", "'/my skills/own/a.py'"),
    ("bash {baseDir}/a.sh x", "bash '/my skills/own/a.sh' x"),
    ("See {baseDir}/a.md.", "See '/my skills/own/a.md'."),
    ("[a]({baseDir}/a.md)", "[a]('/my skills/own/a.md')"),
    ("$SKILL_DIR/../x", "'/my skills/own/'../x"),
    ("ls $SKILL_DIR/*.py", "ls '/my skills/own/'*.py"),
    ('cd "${SKILL_DIR}/a"', 'cd "/my skills/own/a"'),
    ('a "b" ${SKILL_DIR}', "a \"b\" '/my skills/own'"),
    ("path = '{baseDir}/a'", "path = '/my skills/own/a'"),
    ("don't run $SKILL_ROOT", "don't run '/my skills/own'"),
    ("$SKILL_DIRECTORY", "$SKILL_DIRECTORY"),
    (r"\${SKILL_DIR} \$SKILL_DIR", r"\${SKILL_DIR} \$SKILL_DIR"),
    ("`${baseDir}/a` {{baseDir}}", "`${baseDir}/a` {{baseDir}}"),
    ("$SKILL_PATH/a", "$SKILL_PATH/a"),
]


@pytest.mark.parametrize(("text", "expected"), FORMS)
def test_a_path_with_a_blank_is_quoted(text: str, expected: str) -> None:
    """Unless quotes are around it; what other languages write alike stays."""
    directory = Path("/my skills/own")
    variables = {"SKILL_DIR": str(directory), "SKILL_ROOT": str(directory)}

    assert SkillDirectory(directory, Path("/w"), variables).filled(text) == expected


@pytest.mark.parametrize(
    "assignment",
    ["SKILL_DIR=$(pwd)", "export SKILL_DIR=/x", "SKILL_DIR := .", "SKILL_DIR = 'x'"],
)
def test_a_name_that_the_text_assigns_stays(assignment: str) -> None:
    """It is the text's own; the other names are filled."""
    variables = {"SKILL_DIR": "/own", "SKILL_ROOT": "/own"}
    place = SkillDirectory(Path("/own"), Path("/w"), variables)

    text = place.filled(f"{assignment}\n$SKILL_DIR/a ${{SKILL_ROOT}}/b {{baseDir}}")

    assert text == f"{assignment}\n$SKILL_DIR/a /own/b /own"


def test_a_comparison_assigns_nothing() -> None:
    """``==`` and a variable that is compared are not an assignment."""
    place = SkillDirectory(Path("/own"), Path("/w"), {"SKILL_DIR": "/own"})

    assert place.filled('[ "$SKILL_DIR" = "" ] $SKILL_DIR') == '[ "/own" = "" ] /own'
    assert place.filled("SKILL_DIR == 1: $SKILL_DIR") == "SKILL_DIR == 1: /own"


def test_a_text_is_equal_wherever_the_skill_lies() -> None:
    """So a digest of it holds on another machine."""
    texts = []
    for root in ("/a", "/b/c"):
        variables = {"SKILL_DIR": f"{root}/own", "CLAUDE_PLUGIN_ROOT": root}
        place = SkillDirectory(Path(f"{root}/own"), Path(f"{root}/work"), variables)
        shown = "\n".join([place.filled(BODY), *place.lines()])
        texts.append(place.unfilled(shown))

    assert texts[0] == texts[1]
    assert "/own" not in texts[0]
