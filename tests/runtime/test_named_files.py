"""Which files and directories of the workspace an untrusted script gets:
`skillruntime/runtime/files/named_files.py`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover
from skillruntime.contract import SkillResponse
from skillruntime.errors import ErrorCode
from skillruntime.runtime import Approval, Grants, Limits, SkillRuntime
from tests import needs

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
    pytest.mark.usefixtures("some_sandbox"),
]

PATH = {"type": "string", "format": "path"}
# Prints what there is at the path, and where the script works.
LISTING = """
import json, os, sys
path = json.load(sys.stdin).get("path")
here = os.listdir(".")
if path and os.path.isdir(path):
    found = []
    for directory, _, names in os.walk(path):
        found += [os.path.relpath(os.path.join(directory, name), path) for name in names]
    print(json.dumps(sorted(found)))
elif path and os.path.exists(path):
    print(json.dumps(open(path).read()))
else:
    print(json.dumps(["nothing", *sorted(here)]))
"""


class Sample:
    """An untrusted skill ``lister`` in *place*, and a workspace beside it."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.workspace = place / "workspace"
        self.workspace.mkdir()
        self.asked: list[Approval] = []

    def fill(self, *paths: str) -> None:
        """Write a file, whose text is its path, at each of *paths*."""
        for path in paths:
            file = self.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(path)

    def write(
        self, declared: dict[str, Any], script: str = LISTING, **document: Any
    ) -> None:
        """Write the skill; *declared* describes its parameter ``path``."""
        skill = self.place / "skills" / "lister"
        (skill / "scripts").mkdir(parents=True)
        (skill / "SKILL.md").write_text(
            "---\nname: lister\ndescription: Lists.\n---\nDo it.\n"
        )
        (skill / "scripts" / "run.py").write_text(script)
        contract = {
            "version": "2.0.0",
            "input": {
                "type": "object",
                "properties": {"path": declared},
                "additionalProperties": False,
            },
            "run": {"script": "scripts/run.py"},
            **document,
        }
        (skill / "contract.json").write_text(json.dumps(contract))

    def runtime(self, answer: bool | Grants = True, **options: Any) -> SkillRuntime:
        """Return a runtime whose host gives this *answer*."""

        def approve(request: Approval) -> bool | Grants:
            self.asked.append(request)
            return answer

        return SkillRuntime(
            discover(self.place / "skills"),
            approve=approve,
            workspace=self.workspace,
            **options,
        )

    def call(self, arguments: Any, **options: Any) -> SkillResponse:
        """Return the answer of one call."""
        return self.runtime(**options).call_sync("lister", arguments)


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    return Sample(tmp_path)


def warnings_of(response: SkillResponse) -> list[str]:
    """Return the warnings of the answer, which a model reads."""
    return (response.metadata or {}).get("warnings", [])


@pytest.mark.parametrize(
    ("declared", "arguments", "document"),
    [
        ({**PATH, "default": ".env"}, {}, {}),
        ({**PATH, "default": "secrets.txt"}, {}, {}),
        ({**PATH, "enum": ["secrets.txt"]}, {"path": "secrets.txt"}, {}),
        ({**PATH, "enum": ["secrets.txt"]}, {"path": "SECRETS.TXT"}, {}),
        ({**PATH, "const": "secrets.txt"}, {"path": "secrets.txt"}, {}),
        ({"default": "secrets.txt"}, {}, {"derived": {}}),
        ({"enum": ["secrets.txt"]}, {"path": "secrets.txt"}, {"derived": {}}),
    ],
    ids=str,
)
def test_what_the_author_of_a_skill_wrote_names_no_file(
    sample: Sample, declared: Any, arguments: Any, document: Any
) -> None:
    """Neither a default nor a member of an enum nor a const gets a file of the host."""
    sample.fill(".env", "secrets.txt")
    sample.write(declared, **document)

    response = sample.call(arguments)

    assert response.data == ["nothing"], response.errors
    assert sample.asked[0].files == ()


def test_a_constant_of_a_migration_names_no_file(sample: Sample) -> None:
    """Its author wrote it, and not the caller."""
    sample.fill("secrets.txt")
    step = {"set_default": {"at": "/path", "value": "secrets.txt"}}
    migration = {"from": "1.x", "to": "2.0.0", "accepts": {}, "steps": [step]}
    sample.write(PATH, migrations=[migration])

    response = sample.runtime().call_sync("lister", {}, version="1.0.0")

    assert response.data == ["nothing"], response.errors


def test_the_answer_says_that_a_default_was_not_copied(sample: Sample) -> None:
    """A check of an empty directory would pass: the model sends the path instead."""
    sample.fill("src/a.py")
    sample.write({**PATH, "default": "."})

    unsent, sent = sample.call({}), sample.call({"path": "."})

    assert warnings_of(unsent) == [
        "'.' was not copied for the script: the contract names it, and not the call; "
        "send it to have it copied"
    ]
    assert (sent.data, warnings_of(sent)) == (["src/a.py"], [])


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "notes.md"},
        '{"path": "notes.md"}',
        "{'path': 'notes.md',}",
        {"Path": "notes.md"},
        {"path": "Notes.md"},
        {"path": "'notes.md'"},
        {"path": "file://notes.md"},
        {"file": "notes.md"},
        {"path": ["notes.md"]},
    ],
    ids=str,
)
def test_a_text_of_the_call_names_a_file_also_after_a_repair_of_form(
    sample: Sample, arguments: Any
) -> None:
    """Syntax, a key, quotes, an alias's key, and the spelling of an existing path."""
    sample.fill("notes.md")
    sample.write(PATH, aliases={"path": ["file"]})

    assert sample.call(arguments).data == "notes.md"


@pytest.mark.parametrize("document", [{}, {"derived": {}}], ids=["written", "derived"])
@pytest.mark.parametrize("sent", ["src", "./src/", "{}/src"])
def test_a_directory_is_copied(sample: Sample, document: Any, sent: str) -> None:
    """With all that is below it, and with nothing beside it."""
    sample.fill("src/a.py", "src/sub/b.py", "other.txt")
    (sample.workspace / "src" / "empty").mkdir()
    sample.write(PATH if not document else {"type": "string"}, **document)

    response = sample.call({"path": sent.format(sample.workspace)})

    assert response.data == ["a.py", "sub/b.py"], response.errors
    assert [each.to_dict() for each in sample.asked[0].files] == [
        {"path": "src", "bytes": 20, "files": 2}
    ]
    assert warnings_of(response) == []


def test_a_point_is_the_workspace(sample: Sample) -> None:
    """And what is left out of it is counted in the approval and in the answer."""
    sample.fill("a.py", ".env", ".git/config", "src/.hidden", "src/b.py")
    (sample.workspace / "out").symlink_to("/etc")
    sample.write(PATH)

    response = sample.call({"path": "."})

    assert response.data == ["a.py", "src/b.py"]
    assert str(sample.asked[0].files[0]) == (
        ". (2 files, 12 bytes; left out: 3 dotfiles, 1 link)"
    )
    assert warnings_of(response) == [
        "'.' was copied for the script; left out: 3 dotfiles, 1 link. Tell the user: "
        "the host can grant it, SkillRuntime(grants={'lister': "
        "Grants(dotfiles=('.env', '.git', 'src/.hidden'))})"
    ]
    assert "left out: 3 dotfiles, 1 link" in response.to_json()


def test_a_link_is_copied_that_stays_in_its_directory(sample: Sample) -> None:
    """As a link, so that it never leads to what was not copied."""
    sample.fill("src/a.py", "src/.env", "other.txt")
    for name, target in [
        ("inside", "a.py"),
        ("absolute", str(sample.workspace / "src" / "a.py")),
        ("hidden", ".env"),
        ("outside", "../other.txt"),
        ("broken", "no"),
    ]:
        (sample.workspace / "src" / name).symlink_to(target)
    sample.write(PATH)

    response = sample.call({"path": "src"})

    assert response.data == ["a.py", "absolute", "inside"]
    (warning,) = warnings_of(response)
    assert "'src' was copied for the script; left out: 1 dotfile, 3 links." in warning


@pytest.mark.parametrize(
    "limits", [Limits(copied_bytes=10), Limits(copied_files=1)], ids=["bytes", "files"]
)
def test_a_directory_above_the_limits_is_refused_with_its_size(
    sample: Sample, limits: Limits
) -> None:
    """Before the host is asked, and before the script starts."""
    sample.fill("src/a.py", "src/b.py")
    sample.write(PATH)

    (error,) = sample.call({"path": "src"}, script_limits=limits).errors

    assert "'src' is too large" in error.message
    assert "it has 16 bytes in 2 files" in error.message
    assert "script_limits" in str(error.suggested_action)
    assert sample.asked == []


def test_the_limits_are_those_that_the_documentation_names() -> None:
    assert (Limits().copied_bytes, Limits().copied_files) == (64 * 1024**2, 10_000)


def test_a_directory_that_does_not_exist_is_refused(sample: Sample) -> None:
    """And the answer says what the workspace has."""
    sample.fill("source/a.py")
    sample.write(PATH)

    (error,) = sample.call({"path": "src/"}).errors

    assert "The directory 'src/' is not in the workspace" in error.message
    assert "which has 'source'" in error.message
    assert error.recoverable


def test_a_text_of_a_derived_contract_may_be_a_directory_that_is_not_there(
    sample: Sample,
) -> None:
    """It may as well be one that the script makes, so the call runs and the answer says
    so.
    """
    sample.write({"type": "string"}, derived={})

    assert warnings_of(sample.call({"path": "src/"})) == [
        "'src/' is not in the workspace"
    ]
    assert warnings_of(sample.call({"path": "https://example.org/"})) == []


def test_the_answer_says_that_a_directory_is_empty(sample: Sample) -> None:
    """A workspace that the host did not fill, for example."""
    sample.write(PATH)

    assert warnings_of(sample.call({"path": "."})) == ["The directory '.' was empty"]


@pytest.mark.parametrize("sent", [".env", "./.env", "src/../.env", "link", "{}/.env"])
def test_a_dotfile_is_refused_with_the_grant_that_helps(
    sample: Sample, sent: str
) -> None:
    """The call is refused before the script starts; with the grant it runs."""
    sample.fill(".env", "src/a.py")
    (sample.workspace / "link").symlink_to(".env")
    sample.write(PATH)
    arguments = {"path": sent.format(sample.workspace)}

    refused = sample.call(arguments)
    granted = sample.call(arguments, grants={"lister": Grants(dotfiles=(".env",))})
    answered = sample.call(arguments, answer=Grants(dotfiles=(".env",)))

    (error,) = refused.errors
    assert error.code is ErrorCode.ACCESS_DENIED
    assert "Grants(dotfiles=('.env',))" in str(error.suggested_action)
    assert [each.kind for each in sample.asked[0].missing] == ["grant"]
    assert (granted.data, answered.data) == (".env", ".env")


def test_a_directory_with_a_dot_is_granted_as_one_thing(sample: Sample) -> None:
    """A script that needs `.git` gets all of it, and no other dotfile."""
    sample.fill("a.py", ".env", ".git/HEAD", ".git/.lock", ".git/refs/main")
    sample.write(PATH)

    (error,) = sample.call({"path": ".git/refs"}).errors
    grants = {"lister": Grants(dotfiles=(".git",))}
    inside = sample.call({"path": ".git/refs"}, grants=grants)
    around = sample.call({"path": "."}, grants=grants)

    assert "dotfiles=('.git',)" in str(error.suggested_action)
    assert inside.data == ["main"]
    assert around.data == [".git/.lock", ".git/HEAD", ".git/refs/main", "a.py"]
    (warning,) = warnings_of(around)
    assert "left out: 1 dotfile. " in warning
    assert "Grants(dotfiles=('.git', '.env'))" in warning


def test_a_directory_of_dotfiles_alone_is_refused_and_not_empty(sample: Sample) -> None:
    """A script would find nothing where there is something."""
    sample.fill("conf/.env")
    sample.write(PATH)

    (error,) = sample.call({"path": "conf"}).errors

    assert "Grants(dotfiles=('conf/.env',))" in str(error.suggested_action)


def test_what_a_script_changes_in_a_copied_directory_comes_back_as_new_files(
    sample: Sample,
) -> None:
    """The workspace's own files stay as they were."""
    sample.fill("src/a.py", "src/run.sh")
    (sample.workspace / "src" / "run.sh").chmod(0o755)
    script = (
        "import json, os\n"
        "open('src/a.py', 'w').write('changed')\n"
        "print(json.dumps(os.access('src/run.sh', os.X_OK)))"
    )
    sample.write(PATH, script)

    response = sample.call({"path": "src"})

    files = [file["path"] for file in (response.metadata or {})["files"]]
    assert (response.data, files) == (True, ["skill-files/lister/src/a.py"])
    assert (sample.workspace / "src" / "a.py").read_text() == "src/a.py"


def test_a_file_that_is_gone_from_the_workspace_is_gone_from_the_copy(
    sample: Sample,
) -> None:
    """A check would report it again; what the script made there stays."""
    sample.fill("src/a.py", "src/b.py")
    sample.write(PATH, "open('src/made', 'w').close()\n" * 1 + LISTING)
    session = sample.runtime().session()

    session.call_sync("lister", {"path": "src"})
    (sample.workspace / "src" / "b.py").unlink()
    response = session.call_sync("lister", {"path": "src"})

    assert response.data == ["a.py", "made"]


@pytest.mark.parametrize("document", [{}, {"derived": {}}], ids=["written", "derived"])
@pytest.mark.parametrize("sent", ["out", "out/made.txt"])
def test_a_script_finds_the_directory_in_which_it_shall_write(
    sample: Sample, document: Any, sent: str
) -> None:
    """Also an empty one, and that of a file which does not exist yet; nothing beside
    the file is copied.
    """
    (sample.workspace / "out").mkdir()
    if sent != "out":
        sample.fill("out/other.txt")
    script = (
        "import json, os\n"
        "open('out/made.txt', 'w').close()\n"
        "print(json.dumps(os.listdir('out')))"
    )
    sample.write(PATH if not document else {"type": "string"}, script, **document)

    response = sample.call({"path": sent})

    assert response.data == ["made.txt"], response.errors


def test_a_script_without_parameters_gets_files_by_a_grant(sample: Sample) -> None:
    """It works on the directory in which it starts; the answer names the grant, and
    then that of the dotfiles in it.
    """
    sample.fill("a.py", ".git/HEAD")
    script = "import json, os\nprint(json.dumps(sorted(os.listdir('.'))))"
    sample.write(PATH, script, input={"type": "object", "properties": {}})
    files, dotfiles = (".",), (".git",)

    without = sample.call({})
    some = sample.call({}, grants={"lister": Grants(files=files)})
    every = sample.call({}, answer=Grants(files=files, dotfiles=dotfiles))

    assert without.data == []
    assert "Grants(files=('.',))" in warnings_of(without)[0]
    assert some.data == ["a.py"]
    assert "Grants(dotfiles=('.git',), files=('.',))" in warnings_of(some)[0]
    assert (every.data, warnings_of(every)) == ([".git", "a.py"], [])
    assert str(sample.asked[1].files[0]).startswith(". (1 file, 4 bytes; left out")


def test_a_pipe_is_refused(sample: Sample) -> None:
    """The host does not wait for its other end."""
    os.mkfifo(sample.workspace / "pipe")
    sample.write(PATH)

    (error,) = sample.call({"path": "pipe"}).errors

    assert "neither a file nor a directory" in error.message


def test_the_approval_lists_every_file_with_its_size(sample: Sample) -> None:
    """What a person decides on."""
    sample.fill("a.py", "b/c.py")
    sample.write({"type": "array", "items": {"type": "string"}}, derived={})

    sample.call({"path": ["b", "a.py", "no.py", "b"]})

    assert list(map(str, sample.asked[0].files)) == [
        "a.py (4 bytes)",
        "b (1 file, 6 bytes)",
    ]


@pytest.mark.parametrize("path", ["/etc/.env", "../.env", "a/../../.env"])
def test_a_grant_of_files_is_relative_to_the_workspace(path: str) -> None:
    with pytest.raises(ValueError, match="relative to the workspace"):
        Grants(dotfiles=(path,))
    with pytest.raises(ValueError, match="relative to the workspace"):
        Grants(files=(path,))


def test_a_text_with_more_than_a_path_names_nothing(sample: Sample) -> None:
    """In a derived contract a text counts that is exactly a path."""
    sample.fill("a.py")
    sample.write({"type": "string"}, derived={})

    assert sample.call({"path": "see a.py"}).data == ["nothing"]
    assert sample.call({"path": "A.py"}).data == ["nothing"]


def test_an_empty_text_names_nothing(sample: Sample) -> None:
    """Models send one for a file that they do not have: it is not the workspace."""
    sample.fill("secrets.txt")
    sample.write(PATH)

    response = sample.call({"path": ""})

    assert response.data == ["nothing"] or response.data == []
    assert sample.asked[0].files == ()


def test_a_link_that_leads_outside_is_refused(sample: Sample) -> None:
    """Named itself: a script that finds nothing there says it found nothing."""
    outside = sample.place / "private.txt"
    outside.write_text("private")
    (sample.workspace / "link.txt").symlink_to(outside)
    sample.write(PATH)

    response = sample.call({"path": "link.txt"})

    assert response.errors is not None
    assert response.errors[0].code is ErrorCode.INVALID_INPUT
    assert "'link.txt' is outside" in response.errors[0].message
    assert sample.asked == []


@pytest.mark.parametrize("path", ["a/" * 2500, "a" * 300, "a/" * 2500 + "b"])
def test_a_path_that_no_system_takes_is_not_an_internal_error(
    sample: Sample, path: str
) -> None:
    """It names nothing."""
    sample.write(PATH)

    response = sample.call({"path": path})

    assert response.errors is None or all(
        error.code is not ErrorCode.INTERNAL_ERROR for error in response.errors
    )


def test_a_result_goes_through_no_link(sample: Sample) -> None:
    """A script that worked in the workspace itself may have left one."""
    outside = sample.place / "outside"
    outside.mkdir()
    (sample.workspace / "skill-files").mkdir()
    (sample.workspace / "skill-files" / "lister").symlink_to(outside)
    sample.write(PATH, 'open("new.txt", "w").write("1"); print("{}")')

    response = sample.call({})

    assert response.status == "success"
    assert "files" not in (response.metadata or {})
    assert list(outside.iterdir()) == []
