"""What a sandbox refuses and a grant lifts: recognised in what a script wrote, and named
with the grant that helps (`skillruntime/runtime/scripts/refusals.py`).
"""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover
from skillruntime.contract import SkillResponse
from skillruntime.errors import ErrorCode
from skillruntime.runtime import Grants, SkillRuntime
from skillruntime.runtime.scripts.refusals import (
    Ungranted,
    missed_words,
    named_dotfiles,
    opens_connections,
    shows_refused_network,
    shows_refused_path,
)
from tests import needs
from tests.skill_files import write_skill_files

OPTION = (
    "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n')\n"
    "p.parse_args()\n"
)
BASH = "#!/bin/bash\n# Usage: run.sh [--name NAME]\nset -e\n"


class Sample:
    """An untrusted skill ``own`` with one script, in a workspace of the host."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.workspace = place / "work"
        self.workspace.mkdir()

    def fill(self, *paths: str) -> None:
        """Write a file, whose text is its path, at each of *paths*."""
        for path in paths:
            file = self.workspace / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(path)

    def runtime(self, script: str, source: str, **options: Any) -> SkillRuntime:
        """Return a runtime of the skill, whose *script* has this *source*."""
        if script.endswith(".py") and "argparse" not in source:
            source = f"{OPTION}{source}\n"
        files = {f"scripts/{script}": source}
        write_skill_files(self.place / "skills", "own", "Works", files)
        return SkillRuntime(
            discover(self.place / "skills"),
            approve=lambda request: True,
            workspace=self.workspace,
            **options,
        )

    def call(
        self,
        script: str,
        source: str,
        arguments: dict[str, Any] | None = None,
        **options: Any,
    ) -> SkillResponse:
        """Return the answer of the script."""
        runtime = self.runtime(script, source)
        name = f"own/{script.partition('.')[0]}"
        return runtime.call_sync(name, arguments or {}, **options)


@pytest.mark.parametrize(
    ("lacking", "text"),
    [
        (Ungranted(), ""),
        (Ungranted(Grants(network=True)), "the network"),
        (Ungranted(Grants(network=True, files=("a.txt",))), "the network and 'a.txt'"),
        (
            Ungranted(Grants(environment=("KEY",), files=(".",)), outside=True),
            "KEY, the files of the workspace and access to directories outside the "
            "workspace",
        ),
    ],
)
def test_missing_access_is_listed_as_in_a_sentence(
    lacking: Ungranted, text: str
) -> None:
    assert str(lacking) == text
    assert bool(lacking) is bool(text)


@pytest.fixture
def sample(tmp_path: Path, some_sandbox: None) -> Sample:
    return Sample(tmp_path)


def said_of(response: SkillResponse) -> str:
    """Return what the model reads beside the output: what to do, and the warnings."""
    actions = [error.suggested_action or "" for error in response.errors]
    return "\n".join([*actions, *(response.metadata or {}).get("warnings", [])])


NETWORK = "Tell the user: the host can grant it, SkillRuntime(grants={'own': Grants("


@pytest.mark.processes
@pytest.mark.parametrize(
    ("script", "source", "program"),
    [
        (
            "run.py",
            "s = __import__('socket')\ns.create_connection(('192.0.2.1', 9), 5)\n",
            "python3",
        ),
        (
            "run.py",
            "s = __import__('socket')\ns.create_connection(('127.0.0.1', 9), 5)\n",
            "python3",
        ),
        (
            "run.py",
            "u = __import__('urllib.request').request\n"
            "try:\n    u.urlopen('http://example.com')\n"
            "except OSError as error:\n    raise SystemExit(f'no page: {error}')\n",
            "python3",
        ),
        ("run.sh", f"{BASH}echo > /dev/tcp/127.0.0.1/9\n", "bash"),
        ("run.sh", f"{BASH}a=http://example.com; c=curl; $c -sS $a\n", "curl"),
        ("run.sh", f"{BASH}curl -sS http://127.0.0.1:9\n", "curl"),
        ("run.sh", f"{BASH}git clone https://example.com/x.git\n", "git"),
        (
            "run.mjs",
            "import net from 'node:net'\nprocess.argv.slice(2)\nnet.connect(9, '127.0.0.1')\n",
            "node",
        ),
        (
            "run.mjs",
            "process.argv.slice(2)\nawait fetch('http://example.com')\n",
            "node",
        ),
    ],
    ids=[
        "socket",
        "host",
        "urllib",
        "bash",
        "curl",
        "curl-refused",
        "git",
        "node",
        "fetch",
    ],
)
def test_a_refused_connection_names_the_network(
    sample: Sample, script: str, source: str, program: str
) -> None:
    """Whatever the language makes of the error number."""
    needs.program(program)

    response = sample.call(script, source)

    assert response.status == "failed"
    assert "It ran without the network, which may be why." in said_of(response)
    assert f"{NETWORK}network=True)" in said_of(response)


@pytest.mark.processes
def test_the_grant_that_is_named_lets_the_script_run(sample: Sample) -> None:
    """A message about the network helps, and nothing more is said then."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = listener.getsockname()
        source = (
            "import socket\n"
            f"socket.create_connection({address}, 5).close()\n"
            "print('done')\n"
        )

        refused = sample.call("run.py", source)
        granted = sample.call("run.py", source, grants=Grants(network=True))

    assert "Grants(network=True)" in said_of(refused)
    assert (granted.data, said_of(granted)) == ({"stdout": "done"}, "")


@pytest.mark.processes
def test_a_script_that_catches_the_refusal_names_the_network(sample: Sample) -> None:
    """What it printed shows nothing; that it opens connections, its source does."""
    source = (
        "import socket, sys\n"
        "try:\n    socket.create_connection(('127.0.0.1', 9), 1)\n"
        "except OSError:\n    sys.exit('the server did not start')\n"
    )

    response = sample.call("run.py", source)
    runtime = sample.runtime("run.py", source)

    assert "It ran without the network, which may be why." in said_of(response)
    assert runtime.lacks_network("own/run") is True
    assert runtime.lacks_network("own/run", grants=Grants(network=True)) is False
    assert runtime.missing("own/run") == ()


@pytest.mark.processes
def test_a_result_that_shows_a_refusal_has_a_warning(sample: Sample) -> None:
    """A script that ends well may still report that it reached nothing."""
    source = (
        "u = __import__('urllib.request').request\n"
        "try:\n    u.urlopen('http://example.com')\n"
        "except OSError as error:\n    print('0 links checked:', error)\n"
    )

    response = sample.call("run.py", source)

    assert response.status == "success"
    assert "It ran without the network, which may be why." in said_of(response)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("source", "grants"),
    [
        ("raise SystemExit('3 problems')\n", None),
        ("open('/nothing/of/this')\n", None),
        ("raise PermissionError(13, 'Permission denied', 'report.txt')\n", None),
        ("raise SystemExit('fault in name resolution')", Grants(network=True)),
        ("import socket\nraise SystemExit('3 problems')", Grants(network=True)),
    ],
)
def test_another_failure_names_no_grant(
    sample: Sample, source: str, grants: Grants | None
) -> None:
    """What was not refused, or is granted, is not the reason."""
    sample.fill("data.csv")

    response = sample.call("run.py", source + "# argv\n", {}, grants=grants)

    assert "It ran without" not in said_of(response)


@pytest.mark.processes
def test_a_trusted_script_is_refused_nothing(sample: Sample) -> None:
    """It is not confined, so its failure has another reason."""
    sample.runtime("run.py", "import sys\nsys.exit('in name resolution')\n")
    catalog = discover(sample.place / "skills", trusted=True)

    response = SkillRuntime(catalog).call_sync("own/run", {})

    assert (response.status, "It ran without" in said_of(response)) == ("failed", False)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("paths", "source", "grant"),
    [
        (["data.csv"], "open('data.csv')", "files=('data.csv',)"),
        (["a b/c.csv"], "open('a b/c.csv')", "files=('a b/c.csv',)"),
        (
            [".env"],
            "import sys\ntry:\n    open('.env')\n"
            "except OSError as error:\n    sys.exit(str(error))",
            "dotfiles=('.env',), files=('.env',)",
        ),
        (
            [".git/HEAD", "a.py"],
            "import subprocess, sys\n"
            "sys.exit(subprocess.run(['git', 'status']).returncode)",
            "dotfiles=('.git',), files=('.',)",
        ),
    ],
    ids=["file", "with-a-blank", "dotfile", "git"],
)
def test_a_file_that_was_not_copied_is_named(
    sample: Sample, paths: list[str], source: str, grant: str
) -> None:
    """One that the script names itself is in the workspace, and not in its copy."""
    needs.program("git")
    sample.fill(*paths)

    response = sample.call("run.py", source)

    assert response.status == "failed"
    assert f"{NETWORK}{grant})" in said_of(response)


@pytest.mark.processes
def test_a_granted_file_is_there(sample: Sample) -> None:
    """The remedy for a file helps."""
    sample.fill(".env")
    source = "import sys\nprint(open('.env').read(), len(sys.argv))\n"

    grants = Grants(files=(".env",), dotfiles=(".env",))
    response = sample.call("run.py", source, grants=grants)

    assert response.data == {"stdout": ".env 1"}, response.errors


@pytest.mark.processes
def test_a_directory_outside_is_the_hosts_to_choose(sample: Sample) -> None:
    """A script may print any path, so no message asks for the one that it printed."""
    source = "import sys\nopen('/usr/report.txt', 'w')\n"

    response = sample.call("run.py", source)

    said = said_of(response)
    assert "It ran without access to directories outside the workspace" in said
    assert f"{NETWORK}write=(DIRECTORY,))" in said
    assert "write=('/usr" not in said


@pytest.mark.processes
def test_all_that_is_refused_is_in_one_sentence(
    sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is granted already, because a second sentence would replace it."""
    for name in ("FIRST", "SECOND"):
        monkeypatch.setenv(name, "x")
    sample.fill("data.csv")
    source = (
        "import os, socket, sys\n"
        "os.environ.get('FIRST'), os.environ.get('SECOND')\n"
        "open('data.csv')\n"
    )

    response = sample.call("run.py", source, grants=Grants(environment=("FIRST",)))

    assert (
        "It ran without the network, SECOND and 'data.csv', which may be why."
        in said_of(response)
    )
    assert (
        "Grants(network=True, environment=('FIRST', 'SECOND'), files=('data.csv',))"
        in said_of(response)
    )
    assert response.errors[0].details["not_granted"] == {
        "network": True,
        "environment": ["SECOND"],
        "files": ["data.csv"],
    }


@pytest.mark.processes
def test_a_failure_that_a_script_reports_itself_has_a_warning(sample: Sample) -> None:
    """Its errors are its own; what it ran without is beside them."""
    source = (
        "import json, socket, sys\nprint(json.dumps({'status': 'failed', 'errors': "
        "[{'code': 'OFFLINE', 'message': 'no answer'}]}))\nsys.exit(1)\n"
    )

    response = sample.call("run.py", source)

    assert response.errors[0].message == "no answer"
    assert "It ran without the network" in (response.metadata or {})["warnings"][0]


@pytest.mark.processes
def test_a_deadline_names_what_the_script_may_have_waited_for(sample: Sample) -> None:
    """A script that polls a port in a sandbox without network ends so."""
    source = (
        "import socket, sys, time\nprint('waiting', flush=True)\n"
        "while True:\n"
        "    try:\n        socket.create_connection(('127.0.0.1', 9), 1)\n"
        "    except OSError:\n        time.sleep(0.1)\n"
    )

    response = sample.call("run.py", source, timeout=2)

    assert response.errors[0].code is ErrorCode.TOOL_TIMEOUT
    assert "It ran without the network" in said_of(response)


@pytest.mark.processes
def test_a_command_of_the_call_saw_what_the_call_names(sample: Sample) -> None:
    """The answer says so, although the call succeeded; the grant shows the rest."""
    sample.fill("t.py", "page.html")
    source = (
        "import argparse, subprocess\n"
        "parser = argparse.ArgumentParser()\n"
        "parser.add_argument('command', nargs=argparse.REMAINDER)\n"
        "print(subprocess.run(parser.parse_args().command, check=True,\n"
        "    capture_output=True, text=True).stdout)\n"
    )
    arguments = {"command": ["ls", "-1", "t.py", "."]}

    some = sample.call("run.py", source, {"command": ["ls", "t.py"]})
    every = sample.call("run.py", source, arguments)

    assert "saw no file of the workspace that the call does not name" in said_of(some)
    assert f"{NETWORK}files=('.',))" in said_of(some)
    assert "page.html" in str(every.data)
    assert said_of(every) == ""


@pytest.mark.processes
def test_the_files_and_their_dotfiles_are_named_at_once(sample: Sample) -> None:
    """A script without parameters that works on a repository needs both grants."""
    needs.program("git")
    sample.fill("LICENSE", ".git/HEAD", ".cache/x", ".env")
    source = (
        "#!/bin/bash\n"
        "git rev-parse 2> /dev/null || { echo 'no repository' >&2; exit 1; }\n"
    )

    response = sample.call("run.sh", source)

    assert response.status == "failed"
    assert f"{NETWORK}dotfiles=('.git',), files=('.',))" in said_of(response)


def test_a_dotfile_and_what_the_contract_asks_for_are_granted_together(
    sample: Sample,
) -> None:
    """One refusal names both, in one sentence."""
    sample.fill(".state")
    sample.runtime("run.py", "print(1)\n")
    contract = {
        "input": {"properties": {"path": {"type": "string", "format": "path"}}},
        "requires": {"network": True},
        "run": {"script": "scripts/run.py"},
    }
    skill = sample.place / "skills" / "own"
    (skill / "contract.json").write_text(json.dumps(contract))
    runtime = SkillRuntime(
        discover(sample.place / "skills"),
        approve=lambda request: True,
        workspace=sample.workspace,
    )

    error = runtime.call_sync("own", {"path": ".state"}).errors[0]

    assert error.code is ErrorCode.ACCESS_DENIED
    assert error.suggested_action == (
        f"{NETWORK}network=True, dotfiles=('.state',))}})"
    )


@pytest.mark.parametrize(
    "source",
    [
        b"import socket\n",
        b"import os, socket, sys\n",
        b"from urllib.request import urlopen\n",
        b"const net = require('node:net')\n",
        b"import https from 'https'\n",
        b"const page = await fetch(address)\n",
        b"  curl -s https://example.com\n",
        b'wget "$1"\n',
    ],
)
def test_a_source_shows_that_it_opens_connections(source: bytes) -> None:
    """By what it imports or starts."""
    assert opens_connections(source)


@pytest.mark.parametrize(
    "source",
    [
        b"from urllib.parse import quote\n",
        b"# curl is not needed\n",
        b"x = self.fetch(1)\n",
        b"import http\n",
        b"echo 'install curl'\n",
    ],
)
def test_another_source_does_not(source: bytes) -> None:
    """A name alone opens nothing."""
    assert not opens_connections(source)


@pytest.mark.parametrize(
    "written",
    [
        "page.goto: net::ERR_CONNECTION_REFUSED at http://localhost:3000/",
        "Error: getaddrinfo EAI_AGAIN example.com",
        "dial tcp: lookup example.com: Temporary failure in name resolution",
        "wget: unable to resolve host address 'example.com'",
        "urllib3: Failed to establish a new connection: [Errno 13] Permission denied'))",
    ],
)
def test_what_other_runtimes_print_of_a_refused_connection_is_known(
    written: str,
) -> None:
    """Browsers, Node, Go, wget and the libraries of Python."""
    assert shows_refused_network(written)


def test_words_of_missing_files_are_those_of_such_lines() -> None:
    """Other lines name files that are there."""
    written = (
        "reading a.csv\n"
        "python3: can't open file 'workspace/b.py': [Errno 2] No such file or "
        "directory\nError: Cannot find module './c.js'\n"
    )

    words = missed_words(written)

    assert {"b.py", "./c.js"} <= {*words}
    assert "a.csv" not in words


def test_the_dotfiles_that_a_script_names_come_from_its_source() -> None:
    """Those that it does not name are not asked for."""
    names = [".cache", ".env", ".git", ".gitignore"]

    assert named_dotfiles(names, b"git -C . log") == (".git",)
    assert named_dotfiles(names, b"cat .env .gitignore") == (".env", ".gitignore")
    assert named_dotfiles(names, b"echo digital") == ()


def test_a_path_of_the_kernel_or_of_a_grant_is_not_outside() -> None:
    """bash names ``/dev/tcp`` where it may not open a socket."""
    assert not shows_refused_path("/dev/tcp/1/2: Permission denied", [])
    assert not shows_refused_path("/srv/out/a: Permission denied", ["/srv/out"])
    assert not shows_refused_path("out/a: Permission denied", [])
    assert shows_refused_path("'/srv/out/a': Permission denied", ["/srv/other"])
