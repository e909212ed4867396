"""Sandboxes of other frameworks as ours, and ours as theirs: deepagents, strands, agent-framework, openai-agents.

A `SandboxShell` runs shell commands in this library's sandbox; each ``to_...`` gives it to a framework in that
framework's own form. `RemoteBackend` runs skills' scripts where a deepagents backend runs its commands (E2B, Daytona,
Modal, Runloop). The frameworks are imported when their function is called.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import anyio
import anyio.to_thread

from skillruntime.catalog.file_opening import Identity, identity_of, read_inside, write_inside
from skillruntime.runtime.blocking import run_to_end
from skillruntime.runtime.interpreters import SANDBOX_PATH, interpreter_of
from skillruntime.runtime.sandbox.levels import open_sandbox
from skillruntime.runtime.sandbox.protocol import Finished, Limits, Sandbox, SandboxCommand, SandboxLevel
from skillruntime.runtime.sandbox.readable_paths import interpreter_paths
from skillruntime.runtime.sandbox.without_links import HAS_DIRECTORY_DESCRIPTORS, open_writable

__all__ = [
    "RemoteBackend",
    "SandboxShell",
    "to_agent_framework_runner",
    "to_deepagents_backend",
    "to_openai_shell_executor",
    "to_strands_sandbox",
]

_TIMEOUT = 120.0
_LARGEST_FILE = 100 * 1024**2


@dataclass(frozen=True, slots=True)
class SandboxShell:
    """Runs shell commands that can write to *workspace* alone, at the best level of this machine.

    *environment* is all that the commands see besides a path and directories of their own. *readable* are further paths
    that they may read. *sandbox* is as for `SkillRuntime`. Links of *workspace* are followed here, and not again.
    """

    workspace: Path
    sandbox: str | Sandbox = "auto"
    network: bool = False
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    readable: tuple[Path, ...] = ()
    limits: Limits = field(default_factory=lambda: Limits(stdout=_LARGEST_FILE))

    def __post_init__(self) -> None:
        object.__setattr__(self, "workspace", self.workspace.resolve())

    async def run(
        self,
        command: str | tuple[str, ...],
        *,
        timeout: float | None = _TIMEOUT,
        directory: str | None = None,
        environment: Mapping[str, str] | None = None,
        readable: tuple[Path, ...] = (),
        stdin: bytes = b"",
    ) -> Finished:
        """Run a command, as text for ``sh`` or as words, and return how it ended.

        Raises:
            TimeoutError: it did not end in time, and was ended.
            AccessDeniedError: no sandbox works here.
        """
        workspace = self.workspace
        words = ("/bin/sh", "-c", command) if isinstance(command, str) else command
        paths = tuple(dict.fromkeys((*interpreter_paths(sys.executable), *self.readable, *readable)))
        asked = SandboxCommand(
            words,
            workspace / (directory or "."),
            stdin,
            {"PATH": f"{Path(sys.executable).parent}:{SANDBOX_PATH}", **self.environment, **(environment or {})},
            readable=paths,
            writable=(workspace,),
            limits=self.limits,
            network=self.network,
        )
        sandbox = await open_sandbox(self.sandbox)
        with anyio.fail_after(timeout):
            return await sandbox.run(asked)


def to_deepagents_backend(shell: SandboxShell) -> Any:
    """Return *shell* as a deepagents backend (a ``BaseSandbox``), for ``create_deep_agent(backend=...)``."""
    from deepagents.backends.protocol import ExecuteResponse, FileDownloadResponse, FileUploadResponse
    from deepagents.backends.sandbox import BaseSandbox

    class Backend(BaseSandbox):  # type: ignore[misc]  # its base is untyped here
        """Runs every command and every file operation in the sandbox."""

        @property
        def id(self) -> str:
            return f"skillruntime-{shell.workspace.name}"

        def execute(self, command: str, *, timeout: int | None = None) -> Any:
            try:
                finished = run_to_end(partial(shell.run, timeout=timeout or _TIMEOUT), command)
            except TimeoutError:
                return ExecuteResponse(f"The command did not end within {timeout or _TIMEOUT:g} s", 124)
            output = (finished.stdout + finished.stderr).decode("utf-8", "replace")
            return ExecuteResponse(output, finished.exit_code, finished.flooded)

        def upload_files(self, files: list[tuple[str, bytes]]) -> list[Any]:
            # Through the sandbox, so that a path outside the workspace is refused there and not by a check here.
            return [FileUploadResponse(path, _error_of(run_to_end(_write, shell, path, data))) for path, data in files]

        def download_files(self, paths: list[str]) -> list[Any]:
            read = [(path, run_to_end(shell.run, ("/bin/cat", "--", path))) for path in paths]
            return [
                FileDownloadResponse(path, None if done.exit_code else done.stdout, _error_of(done))
                for path, done in read
            ]

    return Backend()


async def _write(shell: SandboxShell, path: str, data: bytes) -> Finished:
    # Elsewhere it might be written to a private directory, and be gone with the command.
    if not Path(os.path.normpath(path)).is_relative_to(shell.workspace):
        return Finished(1, b"", b"outside the workspace")
    quoted = shlex.quote(path)
    return await shell.run(f'mkdir -p -- "$(dirname -- {quoted})" && cat > {quoted}', stdin=data)


def _error_of(finished: Finished) -> str | None:
    """Return the error of deepagents' protocol for a command that failed."""
    if finished.exit_code == 0:
        return None
    said = finished.stderr.decode("utf-8", "replace")
    known = {"No such file": "file_not_found", "Is a directory": "is_directory"}
    return next((error for words, error in known.items() if words in said), "permission_denied")


def to_strands_sandbox(shell: SandboxShell) -> Any:
    """Return *shell* as a sandbox of strands, for ``Agent(sandbox=...)``."""
    from strands.sandbox.errors import SandboxTimeoutError
    from strands.sandbox.posix_shell import PosixShellSandbox, validate_env_keys
    from strands.sandbox.types import ExecutionResult, StreamChunk

    class Shell(PosixShellSandbox):  # type: ignore[misc]  # its base is untyped here
        """Runs every command in the sandbox; file operations are commands."""

        async def execute_streaming(
            self,
            command: str,
            *,
            timeout: float | None = None,
            cwd: str | None = None,
            env: dict[str, str] | None = None,
            **kwargs: Any,
        ) -> AsyncIterator[Any]:
            validate_env_keys(env or {})
            try:
                finished = await shell.run(command, timeout=timeout, directory=cwd, environment=env)
            except TimeoutError as error:
                raise SandboxTimeoutError(f"The command did not end within {timeout:g} s") from error
            stdout, stderr = (text.decode("utf-8", "replace") for text in (finished.stdout, finished.stderr))
            for text, stream in ((stdout, "stdout"), (stderr, "stderr")):
                if text:
                    yield StreamChunk(text, stream)
            yield ExecutionResult(finished.exit_code, stdout, stderr)

    return Shell()


def to_openai_shell_executor(shell: SandboxShell) -> Callable[[Any], Any]:
    """Return *shell* as the executor of the OpenAI Agents SDK, for ``ShellTool(executor=...)``."""
    from agents.tool import ShellCallOutcome, ShellCommandOutput, ShellResult

    async def execute(request: Any) -> Any:
        action = request.data.action
        timeout = None if action.timeout_ms is None else action.timeout_ms / 1000
        outputs = []
        for command in action.commands:
            try:
                done = await shell.run(command, timeout=timeout or _TIMEOUT)
            except TimeoutError:
                outputs.append(ShellCommandOutput(outcome=ShellCallOutcome("timeout"), command=command))
                break  # what follows was written for a machine on which this command had ended
            stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
            outputs.append(ShellCommandOutput(stdout, stderr, ShellCallOutcome("exit", done.exit_code), command))
        return ShellResult(outputs, max_output_length=action.max_output_length)

    return execute


def to_agent_framework_runner(shell: SandboxShell) -> Callable[..., Any]:
    """Return *shell* as the script runner of agent-framework, for ``SkillsProvider(script_runner=...)``.

    The skill's directory is readable, the arguments are words or, for an object, JSON on stdin.
    """

    async def run(skill: Any, script: Any, args: dict[str, Any] | list[str] | None = None) -> str:
        path, directory = Path(script.full_path), Path(skill.path)
        words = tuple(map(str, args)) if isinstance(args, list) else ()
        stdin = json.dumps(args).encode() if isinstance(args, dict) else b""
        done = await shell.run(
            (*interpreter_of(path), str(path.resolve()), *words), readable=(directory.resolve(),), stdin=stdin
        )
        text = done.stdout.decode("utf-8", "replace")
        said = done.stderr.decode("utf-8", "replace").strip()
        return text if done.exit_code == 0 else f"{text}\nThe script failed with exit code {done.exit_code}: {said}"

    return run


@dataclass(frozen=True, slots=True)
class RemoteBackend:
    """Runs scripts where *backend* runs its commands: level ``remote``, which guarantees what the provider says.

    *backend* is any object with the ``execute``, ``upload_files`` and ``download_files`` of deepagents. The skill and
    the workspace are sent for each call; new and changed files of the workspace come back. *python* is the interpreter
    there. Whether there is a network is the provider's decision, not that of a grant.
    """

    backend: Any
    python: str = "python3"
    level: SandboxLevel = "remote"

    async def run(self, command: SandboxCommand, *, on_stopped: Callable[[bool], object] | None = None) -> Finished:
        """Run *command* there once; see `Sandbox`."""
        directories = {
            **{str(path): identity_of(str(path)) for path in command.skills},
            **{str(path): _identity_without_links(str(path)) for path in command.writable},
        }
        place = _Place(f"/tmp/skillruntime-{uuid.uuid4().hex}", self._paths(command), directories)
        try:
            await anyio.to_thread.run_sync(self._send, command, place)
            return await anyio.to_thread.run_sync(self._run, command, place, abandon_on_cancel=True)
        except BaseException:
            if on_stopped is not None:
                on_stopped(False)  # the provider ends it; nothing here sees when
            raise
        finally:
            with anyio.move_on_after(10, shield=True):
                end = (
                    f'[ -f {place.root}/pid ] && kill -9 -- "-$(cat {place.root}/pid)" 2>/dev/null; rm -rf {place.root}'
                )
                await anyio.to_thread.run_sync(self.backend.execute, end, abandon_on_cancel=True)

    def _paths(self, command: SandboxCommand) -> list[tuple[str, str]]:
        named = [(str(path), f"skill{number}/{path.name}") for number, path in enumerate(command.skills)]
        named += [(str(path), f"work{number}") for number, path in enumerate(command.writable)]
        return named

    def _send(self, command: SandboxCommand, place: _Place) -> None:
        files = [(f"{place.root}/stdin", place.moved(command.stdin))]
        # In a file, because other users there could read the words of a command.
        lines = [f"export {name}={shlex.quote(place.moved_text(text))}" for name, text in command.environment.items()]
        lines = [line for line in lines if not line.startswith(("export PATH=", "export HOME=", "export TMPDIR="))]
        files.append((f"{place.root}/environment", "\n".join(lines).encode("utf-8", "surrogateescape")))
        for path, identity in place.directories.items():
            there = dict(place.paths)[path]
            files += [(f"{place.root}/{there}/{name}", data) for name, data in _files_of(path, identity)]
        directories = " ".join(shlex.quote(f"{place.root}/{there}") for _, there in place.paths)
        self._checked(f"umask 077; mkdir -p {directories}")
        for answer in self.backend.upload_files(files):
            if answer.error:
                raise OSError(5, f"the sandbox took no file {answer.path}: {answer.error}")

    def _run(self, command: SandboxCommand, place: _Place) -> Finished:
        first, *others = command.argv
        program = Path(first).name
        if place.moved_text(first) == first:  # an interpreter of this machine, which that one has under its own path
            first = self.python if program.startswith("python") else program
        words = [first, *others]
        line = " ".join(shlex.quote(place.moved_text(word)) for word in words)
        root = place.root
        # A session of its own, so that one signal ends it whole; the marker is older than every file that it writes.
        inner = f". {root}/environment; cd {shlex.quote(place.moved_text(str(command.directory)))} && exec {line}"
        script = (
            f"touch {root}/marker; setsid sh -c {shlex.quote(inner)} <{root}/stdin >{root}/stdout 2>{root}/stderr & "
            f"echo $! >{root}/pid; wait $!; echo $? >{root}/exit; rm -f {root}/pid"
        )
        answer = self.backend.execute(script)
        read = self._downloaded([f"{root}/{name}" for name in ("exit", "stdout", "stderr")])
        if read[0] is None:
            raise OSError(5, f"the sandbox did not run the command: {str(answer.output)[:200]}")
        stdout = (read[1] or b"")[: command.limits.stdout + 1]
        flooded = len(stdout) > command.limits.stdout
        self._bring_back(command, place)
        code = int(read[0].split()[0])
        code = 128 - code if code > 128 else code  # as a shell reports a signal
        return Finished(code, place.back(stdout[: command.limits.stdout]), place.back(read[2] or b""), flooded)

    def _bring_back(self, command: SandboxCommand, place: _Place) -> None:
        for number, here in enumerate(command.writable):
            root = f"{place.root}/work{number}"
            listing = f"{place.root}/files"
            # By the change of the inode, which a script cannot set back; -size bounds what is downloaded.
            found = f"cd {root} && find . -type f -cnewer {place.root}/marker -size -{_LARGEST_FILE // 1024}k -print0"
            self._checked(f"{found} >{listing}")
            names = (self._downloaded([listing])[0] or b"").decode("utf-8", "surrogateescape").split("\0")
            paths = [PurePosixPath(name) for name in names if name]
            wanted = [path for path in paths if not path.is_absolute() and ".." not in path.parts]
            for path, data in zip(wanted, self._downloaded([f"{root}/{path}" for path in wanted]), strict=True):
                if data is not None:
                    write_inside(str(here), str(path), data, identity=place.directories[str(here)])

    def _downloaded(self, paths: list[str]) -> list[bytes | None]:
        return [None if each.error else each.content for each in self.backend.download_files(paths)] if paths else []

    def _checked(self, command: str) -> None:
        answer = self.backend.execute(command)
        if answer.exit_code:
            raise OSError(5, f"the sandbox refused a command: {str(answer.output)[:200]}")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a command is on the other machine, and which path of this one is which there.

    ``directories`` are those whose files are sent; they must stay the same while they are read and written.
    """

    root: str
    paths: list[tuple[str, str]]
    directories: dict[str, Identity]

    def moved_text(self, text: str) -> str:
        """Return *text* with the paths of the other machine."""
        for here, there in self.paths:
            text = text.replace(here, f"{self.root}/{there}")
        return text

    def moved(self, data: bytes) -> bytes:
        """Return *data* likewise."""
        for here, there in self.paths:
            data = data.replace(os.fsencode(here), f"{self.root}/{there}".encode())
        return data

    def back(self, data: bytes) -> bytes:
        """Return *data* with the paths of this machine."""
        for here, there in self.paths:
            data = data.replace(f"{self.root}/{there}".encode(), os.fsencode(here))
        return data


def _identity_without_links(path: str) -> Identity:
    """Return the identity of a directory that a script may write: an earlier one may have left a link there."""
    if not HAS_DIRECTORY_DESCRIPTORS:
        return identity_of(path)
    descriptor = open_writable(path)
    try:
        return identity_of(descriptor)
    finally:
        os.close(descriptor)


def _files_of(directory: str, identity: Identity) -> list[tuple[str, bytes]]:
    """Return the regular files below *directory*: no link is followed."""
    found = []
    for at, names, files in os.walk(directory):
        names[:] = [name for name in names if name != "__pycache__"]
        for name in files:
            path = Path(at, name).relative_to(directory).as_posix()
            # What is a link, a pipe, or too large is left out, also if it became so since the directory was read.
            with suppress(OSError):
                found.append((path, read_inside(directory, path, _LARGEST_FILE, identity=identity)))
    return found
