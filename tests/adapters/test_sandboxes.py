"""Sandboxes of other frameworks as ours, and ours as theirs; each framework's own part needs its package."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

from skillruntime.adapters.sandboxes import (
    RemoteBackend,
    SandboxShell,
    to_agent_framework_runner,
    to_deepagents_backend,
    to_openai_shell_executor,
    to_strands_sandbox,
)
from skillruntime.catalog import discover
from skillruntime.runtime import Grants, SkillRuntime, sandbox_report
from skillruntime.runtime.blocking import run_to_end
from tests.skill_files import write_skill_files

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or all(anyio.run(sandbox_report).values()), reason="no sandbox works here"
)

CANARY = "canary-2a90"


@pytest.fixture
def shell(tmp_path: Path) -> SandboxShell:
    """A shell beside a file that it must not reach."""
    (tmp_path / "secret").write_text(CANARY)
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    return SandboxShell(workspace, environment={"GIVEN": "yes"})


class LocalMachine:
    """A deepagents backend over a directory of this machine: what a remote provider does, without the network."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.commands: list[str] = []
        self.running: subprocess.Popen[str] | None = None

    def _at(self, text: str) -> str:
        return text.replace("/tmp/skillruntime-", f"{self.root}/skillruntime-")

    def execute(self, command: str, *, timeout: int | None = None) -> Any:
        self.commands.append(command)
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        with subprocess.Popen(["sh", "-c", self._at(command)], **pipes, text=True, start_new_session=True) as running:
            self.running = running
            output, _ = running.communicate()
        return SimpleNamespace(output=output, exit_code=running.returncode, truncated=False)

    def end(self) -> None:
        """End the command that still runs: nothing else does, and Python waits at its exit for the thread."""
        if self.running is not None and self.running.poll() is None:
            os.killpg(self.running.pid, signal.SIGKILL)

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
        for path, data in files:
            target = Path(self._at(path))
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data.replace(b"/tmp/skillruntime-", f"{self.root}/skillruntime-".encode()))
        return [SimpleNamespace(path=path, error=None) for path, _ in files]

    def download_files(self, paths: list[str]) -> list[Any]:
        found = [Path(self._at(path)) for path in paths]
        return [
            SimpleNamespace(
                path=path,
                content=at.read_bytes() if at.is_file() else None,
                error=None if at.is_file() else "file_not_found",
            )
            for path, at in zip(paths, found, strict=True)
        ]


SCRIPT = """
import json, os, sys
arguments = json.load(sys.stdin)
text = open(arguments["file"]).read()
os.makedirs("out", exist_ok=True)
open("out/new.txt", "w").write(text.upper())
sys.stderr.write("a log line")
beside = open(os.path.dirname(__file__) + "/words.txt").read()
print(json.dumps({"letters": len(text), "token": os.environ.get("API_TOKEN", "")[:3], "beside": beside}))
"""


@pytest.fixture
def machine(tmp_path: Path) -> LocalMachine:
    """The other machine."""
    root = tmp_path / "machine"
    root.mkdir()
    return LocalMachine(root)


def remote_runtime(tmp_path: Path, machine: Any, source: str = SCRIPT, **options: Any) -> SkillRuntime:
    """Return a runtime whose untrusted skill runs on the other machine."""
    contract = {
        "input": {"type": "object", "properties": {"file": {"type": "string", "format": "path"}}},
        "requires": {"environment": ["API_TOKEN"]},
        "run": {"script": "scripts/run.py"},
    }
    files = {"contract.json": json.dumps(contract), "scripts/run.py": source, "scripts/words.txt": "beside"}
    write_skill_files(tmp_path / "skills", "sample", "Counts", files)
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "in.txt").write_text("hello")
    return SkillRuntime(
        discover(tmp_path / "skills"),
        approve=lambda request: True,
        sandbox=RemoteBackend(machine),
        workspace=tmp_path / "work",
        grants={"sample": Grants(environment=("API_TOKEN",))},
        **options,
    )


def test_a_script_runs_on_a_deepagents_backend(
    tmp_path: Path, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """stdin by a file, stdout and stderr apart, files back, secrets in no command, nothing left there."""
    monkeypatch.setenv("API_TOKEN", f"abc{CANARY}")

    response = remote_runtime(tmp_path, machine).call_sync("sample", {"file": "in.txt"})

    assert response.data == {"letters": 5, "token": "abc", "beside": "beside"}, response.errors
    assert response.metadata is not None
    assert response.metadata["sandbox"] == "remote"
    assert (tmp_path / "work" / "out" / "new.txt").read_text() == "HELLO"
    assert not [command for command in machine.commands if CANARY in command]
    assert list(machine.root.iterdir()) == []


@pytest.mark.parametrize(
    ("source", "part"),
    [("import sys; sys.exit('no such thing')", "no such thing"), ("import os; os.kill(os.getpid(), 9)", "SIGKILL")],
)
def test_a_failure_there_is_a_failure_here(
    tmp_path: Path, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch, source: str, part: str
) -> None:
    """With its exit code or its signal, and its last line."""
    monkeypatch.setenv("API_TOKEN", "abcd")

    response = remote_runtime(tmp_path, machine, source).call_sync("sample", {"file": "in.txt"})

    assert response.errors is not None
    assert part in response.errors[0].message


@pytest.mark.parametrize("exchanged", ["data", "parent"])
@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_granted_directory_that_was_exchanged_is_not_sent(
    tmp_path: Path, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch, exchanged: str
) -> None:
    """Files of another place would leave this machine, and be written by what comes back."""
    monkeypatch.setenv("API_TOKEN", "abcd")
    granted = tmp_path / "parent" / "data"
    granted.mkdir(parents=True)
    (tmp_path / "elsewhere" / "data").mkdir(parents=True)
    for directory in (tmp_path / "elsewhere", tmp_path / "elsewhere" / "data"):
        (directory / "secret").write_text("canary")
    # What the script reads of it, by the path that it was granted.
    runtime = remote_runtime(tmp_path, machine, f"import os; print(len(os.listdir({str(granted)!r})))")
    grants = Grants(environment=("API_TOKEN",), write=(str(granted),))
    before = runtime.call_sync("sample", {"file": "in.txt"}, grants=grants)
    place = granted if exchanged == "data" else granted.parent
    place.rename(tmp_path / "old")
    place.symlink_to(tmp_path / "elsewhere")

    after = runtime.call_sync("sample", {"file": "in.txt"}, grants=grants)

    assert before.data == 0, before.errors
    assert after.errors is not None
    assert "is now reached through a symbolic link" in after.errors[0].message
    assert len(list((tmp_path / "elsewhere").rglob("*"))) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_the_workspace_of_a_shell_is_looked_up_once(tmp_path: Path) -> None:
    """A command that may write above it cannot exchange it for another directory."""
    workspace = tmp_path / "work"
    workspace.mkdir()
    (tmp_path / "elsewhere").mkdir()
    shell = SandboxShell(workspace)
    workspace.rename(tmp_path / "old")
    workspace.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="symbolic link"):
        run_to_end(shell.run, "echo x > made")

    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_files_that_come_back_follow_no_link(
    tmp_path: Path, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A link in the workspace must not turn a remote file into one outside of it."""
    monkeypatch.setenv("API_TOKEN", "abcd")
    runtime = remote_runtime(tmp_path, machine, "import os; os.mkdir('out'); open('out/x', 'w').write('x'); print(1)")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "work" / "out").symlink_to(tmp_path / "elsewhere")

    response = runtime.call_sync("sample", {"file": "in.txt"})

    assert response.status == "failed"
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_at_the_deadline_nothing_is_claimed(
    tmp_path: Path, machine: LocalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a process of another machine is gone cannot be seen from here; it is killed there all the same."""
    monkeypatch.setenv("API_TOKEN", "abcd")
    runtime = remote_runtime(tmp_path, machine, "import time; time.sleep(15)")

    response = runtime.call_sync("sample", {"file": "in.txt"}, timeout=1.0)
    machine.end()

    assert response.errors is not None
    assert response.errors[0].details == {"timeout_seconds": 1.0, "stopped": False}
    assert "kill -9" in machine.commands[-1]


def test_the_shell_reaches_its_workspace_alone(shell: SandboxShell, tmp_path: Path) -> None:
    """Through sh, with what it was given."""

    async def main() -> tuple[bytes, int]:
        wrote = await shell.run("echo $GIVEN > made && cat made")
        denied = await shell.run(f"cat {tmp_path}/secret")
        return wrote.stdout, denied.exit_code

    stdout, code = anyio.run(main)

    assert stdout == b"yes\n"
    assert code != 0
    assert (shell.workspace / "made").read_text() == "yes\n"


def test_deepagents(shell: SandboxShell, tmp_path: Path) -> None:
    """As a backend: commands, files in both directions, and its own file tools, all confined."""
    pytest.importorskip("deepagents")
    backend = to_deepagents_backend(shell)
    inside = f"{shell.workspace}/notes/a.txt"

    uploaded = backend.upload_files([(inside, b"hello\n"), (f"{tmp_path}/outside.txt", b"x")])
    downloaded = backend.download_files([inside, f"{tmp_path}/secret", f"{shell.workspace}/none"])

    assert [each.error for each in uploaded] == [None, "permission_denied"]
    assert downloaded[0].content == b"hello\n"
    assert downloaded[1].content is None
    assert downloaded[2].error == "file_not_found"
    assert backend.execute("echo out; echo err >&2; exit 3").exit_code == 3
    assert CANARY not in backend.execute(f"cat {tmp_path}/secret").output
    assert backend.execute("sleep 600", timeout=1).exit_code == 124
    assert "hello" in str(backend.read(inside))
    assert backend.write(f"{shell.workspace}/b.txt", "b").error is None
    assert (shell.workspace / "b.txt").read_text() == "b"
    assert not (tmp_path / "outside.txt").exists()


def test_our_scripts_on_a_real_deepagents_backend(
    shell: SandboxShell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local shell of deepagents, which confines nothing, as the other machine."""
    pytest.importorskip("deepagents")
    from deepagents.backends import LocalShellBackend

    monkeypatch.setenv("API_TOKEN", "abcd")
    machine = LocalShellBackend(root_dir="/", virtual_mode=False, inherit_env=True)

    response = remote_runtime(tmp_path, machine).call_sync("sample", {"file": "in.txt"})

    assert response.data["letters"] == 5, response.errors
    assert (tmp_path / "work" / "out" / "new.txt").read_text() == "HELLO"


def test_strands(shell: SandboxShell, tmp_path: Path) -> None:
    """As a sandbox: commands, code, and files."""
    pytest.importorskip("strands")
    sandbox = to_strands_sandbox(shell)

    async def main() -> Any:
        await sandbox.write_text(f"{shell.workspace}/a.txt", "hello")
        result = await sandbox.execute("cat a.txt; echo err >&2; exit 4", cwd=str(shell.workspace), env={"A": "1"})
        code = await sandbox.execute_code("print(6 * 7)", "python3")
        denied = await sandbox.execute(f"cat {tmp_path}/secret")
        text = await sandbox.read_text(f"{shell.workspace}/a.txt")
        from strands.sandbox.errors import SandboxTimeoutError

        with pytest.raises(SandboxTimeoutError):
            await sandbox.execute("sleep 600", timeout=1)
        return result, code, denied, text

    result, code, denied, text = anyio.run(main)

    assert (result.exit_code, result.stdout, result.stderr) == (4, "hello", "err\n")
    assert code.stdout == "42\n"
    assert CANARY not in denied.stdout
    assert text == "hello"


def test_openai_agents(shell: SandboxShell, tmp_path: Path) -> None:
    """As the executor of its shell tool."""
    tool = pytest.importorskip("agents.tool")
    execute: Callable[[Any], Any] = to_openai_shell_executor(shell)
    action = tool.ShellActionRequest(["echo hi", f"cat {tmp_path}/secret", "sleep 600", "echo never"], timeout_ms=2000)

    async def main() -> Any:
        return await execute(SimpleNamespace(data=SimpleNamespace(action=action)))

    outputs = anyio.run(main).output

    assert tool.ShellTool(executor=execute).name == "shell"
    assert outputs[0].stdout == "hi\n"
    assert outputs[1].exit_code != 0
    assert [each.status for each in outputs] == ["completed", "completed", "timeout"]


def test_agent_framework(shell: SandboxShell, tmp_path: Path) -> None:
    """As the script runner of its skills, through its own provider of skills."""
    framework = pytest.importorskip("agent_framework")
    source = "import sys, pathlib; print(sys.argv[1:], len(sys.stdin.read()))"
    write_skill_files(tmp_path / "skills", "sample", "Counts", {"scripts/run.py": source})
    runner = to_agent_framework_runner(shell)

    async def main() -> Any:
        found = await framework.FileSkillsSource(str(tmp_path / "skills"), script_runner=runner).get_skills(None)
        (skill,) = found
        script = await skill.get_script("scripts/run.py") or await skill.get_script("run.py")
        return await script.run(skill, ["a", "b c"]), await script.run(skill, {"a": 1})

    words, given = anyio.run(main)

    assert words == "['a', 'b c'] 0\n"
    assert given == "[] 8\n"
