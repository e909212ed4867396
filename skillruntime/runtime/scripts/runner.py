"""Run a skill's script: arguments as one JSON object on stdin, one JSON value on
stdout, and nothing inherited.

A contract with ``run.command_line`` has a script of the ordinary kind: its arguments
are words, its output any text.

No shell, the session's workspace as its directory, an environment made of an allow
list. The script of an untrusted skill always runs in a sandbox, from the copy of its
skill that was approved; that of a trusted one runs there only if the host requests it.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio.to_thread

from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.secret_names import is_secret_name
from skillruntime.errors import (
    AccessDeniedError,
    InvalidSkillError,
    ResourceNotFoundError,
    SkillInputError,
    SkillRuntimeError,
    ToolExecutionError,
    ToolNotAvailableError,
)
from skillruntime.runtime.error_responses import SILENT, TELL
from skillruntime.runtime.files.skill_copy import SkillCopy, copy_skill
from skillruntime.runtime.grants import Grants, requirements_of
from skillruntime.runtime.presentation.skill_directory import (
    DIRECTORY_VARIABLES,
    directory_variables,
)
from skillruntime.runtime.runners import CallContext, ReportedFailureError
from skillruntime.runtime.sandbox.protocol import (
    Finished,
    Limits,
    Sandbox,
    SandboxCommand,
)
from skillruntime.runtime.sandbox.readable_paths import interpreter_paths
from skillruntime.runtime.sandbox.without_links import WritablePathError
from skillruntime.runtime.scripts.interpreters import interpreter_of, script_environment
from skillruntime.runtime.scripts.process import PlainProcess
from skillruntime.runtime.scripts.python_start import is_started_as_module, python_words
from skillruntime.runtime.scripts.readiness import (
    Missing,
    Source,
    how_to_grant,
    interpreter_from_lock,
    missing_of,
    needed_variables,
    read_head,
    refuse_if_missing,
    withheld_variables,
    without_grant,
)
from skillruntime.runtime.scripts.result import (
    Printed,
    Report,
    capped,
    decoded,
    failed_output,
    how_it_ended,
    parse_json_output,
    parse_text_output,
    reported_failure,
    shortened_paths,
    without,
    worth_masking,
)

if TYPE_CHECKING:
    from skillruntime.derive.command_line import CommandLine

__all__ = ["ScriptRunner"]

_log = logging.getLogger("skillruntime.runtime")

# Names alone: the script writes this text, and the error asks the user to install what
# it names.
_MISSING_MODULE = re.compile(
    r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class _Start:
    """What one call starts: the script, its words, and where it runs with what."""

    context: CallContext
    grants: Grants
    directory: Path
    """The skill's directory, or that of its copy."""
    script: Path
    line: CommandLine | None
    """How its command line is written; None for a script that reads JSON from stdin."""
    words: list[str]
    stdin: bytes
    workspace: Path
    sandbox: Sandbox
    variables: tuple[str, ...]
    """The names of the variables that it sees beyond the ordinary ones."""


@dataclass(frozen=True, slots=True)
class ScriptRunner:
    """Runs the script that a contract names in ``run.script``.

    *environment* names further variables that the host lets every script see. *grants*
    are what the host grants this skill; those of one call are in its `CallContext`.
    *sandbox* is ``"auto"``, a level, or a `Sandbox`; with *sandbox_trusted* a trusted
    skill's script runs there too.
    """

    skill: Skill
    contract: Contract
    environment: tuple[str, ...] = ()
    sandbox: str | Sandbox = "auto"
    sandbox_trusted: bool = False
    grants: Grants = field(default_factory=Grants)
    limits: Limits = field(default_factory=Limits)

    stops_when_cancelled = True

    def missing(
        self, grants: Grants, code: SkillCopy | None = None
    ) -> tuple[Missing, ...]:
        """Return what the script lacks on this machine if it is granted *grants*;
        *code* is its copy, if there is one.

        The host's other variables count as granted.
        """
        granted = grants | self.grants | Grants(environment=self.environment)
        return missing_of(
            self.contract,
            self._source(code),
            granted,
            is_trusted=self.skill.trusted,
            skill=self.skill.name,
        )

    def withheld(
        self, grants: Grants, code: SkillCopy | None = None
    ) -> tuple[str, ...]:
        """Return the variables that the script takes if it gets them, that are set
        here, and that it does not get with *grants*.

        The contract names them as optional, or the script reads them. None stops a
        call.
        """
        given = self._variables(grants | self.grants, code)
        optional = requirements_of(self.contract).optional
        named = [name for name in optional if name in os.environ and name not in given]
        read = withheld_variables(self._script_text(code), self._shown, given)
        return tuple(dict.fromkeys((*named, *read)))

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the script once and return the JSON value that it printed.

        Raises:
            InvalidSkillError: the skill has no such script, or it is not what was
                locked.
            AccessDeniedError: the skill is not trusted, and has no grant for what it
                needs, or no working sandbox.
            ToolNotAvailableError: an interpreter, a package or an environment variable
                is missing.
            ToolExecutionError: it failed, or printed more than it may.
            SkillOutputError: it printed nothing, or something other than one JSON
                value.
            SkillInputError: its own parser refused an argument, or its command line
                cannot express it.
        """
        pinned = self.skill.verify()
        if pinned is not None and self.skill.trusted and context.code is None:
            # Of a frozen skill the bytes run that were hashed, and not what is in its
            # directory by then.
            with await anyio.to_thread.run_sync(
                copy_skill, self.skill, self.contract
            ) as code:
                return await self(arguments, replace(context, code=code))
        if not self.skill.trusted and context.code is None:
            # By construction: the files of an untrusted skill are never run where they
            # lie.
            raise AccessDeniedError(
                f"The script of the untrusted skill {self.skill.name!r} was not "
                "approved"
            )
        if pinned is not None and context.code is not None:
            context.code.require(pinned, self.skill.name)
        # Again, although the call was prepared with it: a variable or a package may be
        # gone since the host was asked.
        grants = context.grants | self.grants
        refuse_if_missing(self.missing(grants, context.code))
        start = await self._start(arguments, context, grants)
        command = self._command(start)
        secrets = self._secrets(start, command)
        # Before it runs, so that an execution that is cancelled or does not start is
        # recorded with its level too.
        context.execution["sandbox"] = start.sandbox.level
        if recorded := grants.to_dict():
            context.execution["grants"] = recorded
        context.execution["secrets"] = worth_masking(secrets)
        command = replace(
            command, on_output=partial(self._note_unfinished, start, secrets)
        )
        finished = await self._run(start.sandbox, command, context)
        report = self._report(finished, start, secrets)
        self._note_end(report, start)
        try:
            return self._result(report, start)
        except SkillRuntimeError:
            # Whatever a script printed reaches the caller.
            _note_printed(report, start)
            raise

    async def _start(
        self, arguments: dict[str, Any], context: CallContext, grants: Grants
    ) -> _Start:
        if context.code is None:
            directory = self.skill.directory.resolve()
            script = self._trusted_script(directory)
        else:
            directory = context.code.directory
            script = context.code.script(self._shown)
        line, words = _command_line(self.contract, arguments)
        stdin = b""
        if line is None:
            # surrogatepass: a model may send half of a surrogate pair, and the script
            # decides what it makes of it.
            document = json.dumps(arguments, ensure_ascii=False)
            stdin = document.encode("utf-8", "surrogatepass")
        if self.skill.trusted:
            workspace = context.workspace
        else:
            # In a thread: the files that the call names are copied there first.
            workspace = await anyio.to_thread.run_sync(context.open_workspace)
        return _Start(
            context,
            grants,
            directory,
            script,
            line,
            words,
            stdin,
            workspace,
            sandbox=await self._sandbox(context),
            variables=self._variables(grants, context.code),
        )

    def _command(self, start: _Start) -> SandboxCommand:
        """Return the command that runs the script with what it is granted."""
        source = self._source(start.context.code)
        prepared = interpreter_from_lock(self._shown, source)
        if prepared is None:
            interpreter = interpreter_of(start.script)
        else:
            interpreter = (prepared,)
        is_confined = start.sandbox.level != "none"
        environment = script_environment(start.variables, is_confined=is_confined)
        # Outside the skill a sandbox shows nothing, and what lies around the copy of an
        # untrusted skill is not its plugin.
        environment |= directory_variables(start.directory, looks_above=not is_confined)
        readable: tuple[Path, ...] = ()
        if interpreter:
            readable = interpreter_paths(interpreter[0])
            if is_confined:
                # A script that starts `python` again means the interpreter that runs
                # it, with its packages.
                directory = Path(interpreter[0]).parent
                environment["PATH"] = f"{directory}{os.pathsep}{environment['PATH']}"
        return SandboxCommand(
            (*interpreter, *self._started(start, source), *start.words),
            start.workspace,
            start.stdin,
            environment,
            skills=(start.directory,),
            readable=readable,
            writable=(start.workspace, *map(Path, start.grants.write)),
            limits=self.limits,
            network=start.grants.network,
        )

    def _started(self, start: _Start, source: Source) -> tuple[str, ...]:
        """Return the words by which the interpreter starts the script."""
        if start.script.suffix.lower() != ".py":
            return (str(start.script),)
        path = start.script.relative_to(start.directory).as_posix()
        as_module = is_started_as_module(self._instructions(source), path)
        return python_words(start.directory, start.script, as_module=as_module)

    def _instructions(self, source: Source) -> str:
        """Return the text of SKILL.md; empty where there is none any more."""
        try:
            data = source(os.path.basename(self.skill.metadata.path))  # noqa: PTH119
        except ResourceNotFoundError:
            return ""
        return data.decode("utf-8", "replace")

    def _report(self, finished: Finished, start: _Start, secrets: list[str]) -> Report:
        """Return what the script wrote, without *secrets*: no error, log or result is
        made of text that still has them.
        """
        shortened = shortened_paths(
            (start.directory, self.skill.name), (start.workspace, "workspace")
        )
        masked = without(finished, secrets)
        return Report(masked, shortened, tuple(worth_masking(secrets)))

    def _note_end(self, report: Report, start: _Start) -> None:
        """Note for the envelope how the script ended, and the tail of its stderr."""
        execution, exit_code = start.context.execution, report.finished.exit_code
        if exit_code != 0:
            execution["exit_code"] = exit_code
        if report.finished.stderr:
            _log.debug("%s wrote to stderr:\n%s", start.context.name, report.text())
            if tail := report.tail():
                execution["stderr"] = tail

    def _note_unfinished(
        self, start: _Start, secrets: list[str], stdout: bytes, stderr: bytes
    ) -> None:
        """Note what the script had written when its deadline ended it."""
        finished = Finished(0, stdout, stderr, flooded=True)
        report = self._report(finished, start, secrets)
        self._note_end(report, start)
        _note_printed(report, start)

    def _result(self, report: Report, start: _Start) -> Any:
        """Return the result of the script, which ended as *report* has it.

        Raises:
            SkillRuntimeError: it failed, printed too much or nothing.
        """
        finished, execution = report.finished, start.context.execution
        self._refuse_excess(report)
        if finished.exit_code != 0:
            meanings = self.contract.run.get("exit_codes", {})
            meaning = meanings.get(str(finished.exit_code))
            if meaning is None:
                self._refuse_failure(report, start)
            execution["exit_meaning"] = capped(visible_line(meaning), 200)
        if start.line is None:
            return parse_json_output(finished)
        printed = parse_text_output(finished.stdout)
        _note_warning(printed, start)
        return printed.data

    async def _run(
        self, sandbox: Sandbox, command: SandboxCommand, context: CallContext
    ) -> Finished:
        try:
            return await sandbox.run(
                command, on_stopped=partial(context.execution.__setitem__, "stopped")
            )
        except WritablePathError as error:
            raise AccessDeniedError(
                f"The script is not started: the directory {error.strerror}",
                suggested_action="Tell the user: the host can restore the directory, "
                "or name the one behind the link",
            ) from error
        except OSError as error:
            raise ToolNotAvailableError(
                f"The script {self._shown} cannot be started: "
                f"{error.strerror or type(error).__name__}",
                suggested_action=f"Tell the user to make {self._shown} executable, or "
                "to install its interpreter",
            ) from error

    async def _sandbox(self, context: CallContext) -> Sandbox:
        """Return where this script runs: decided by the host and the skill's source,
        never by the call.
        """
        if self.skill.trusted and not self.sandbox_trusted:
            # An untrusted script may have left what this one would run.
            if not context.has_untrusted_files():
                return PlainProcess()
        from skillruntime.runtime.sandbox.levels import open_sandbox  # imports ctypes

        return await open_sandbox(self.sandbox)

    def _variables(self, grants: Grants, code: SkillCopy | None) -> tuple[str, ...]:
        """Return the variables that the script sees: a trusted skill gets what it asks
        for, another what is granted.
        """
        names = [*grants.environment, *self.environment]
        if self.skill.trusted:
            asked = requirements_of(self.contract)
            source = self._script_text(code)
            needed = needed_variables(self.contract, source, self._shown)
            free = without_grant(needed)
            names = [*asked.environment, *asked.optional, *free, *names]
        # Those of the skill's directory are not the host's, and nothing secret.
        given = dict.fromkeys(name for name in names if name not in DIRECTORY_VARIABLES)
        return tuple(given)

    def _secrets(self, start: _Start, command: SandboxCommand) -> list[str]:
        """Return the values that are kept out of results: those of the variables that
        the contract must have, or that have a secret's name.
        """
        required = requirements_of(self.contract).environment
        secrets = []
        for name in start.variables:
            if name not in command.environment:
                continue
            if name in required or is_secret_name(name):
                secrets.append(command.environment[name])
        return secrets

    def _source(self, code: SkillCopy | None) -> Source:
        """Return what reads the skill's files: from the approved copy, else from its
        directory.
        """
        if code is None:
            return partial(read_head, str(self.skill.directory), self.skill.identity)
        return partial(read_head, str(code.directory), None)

    def _script_text(self, code: SkillCopy | None) -> bytes:
        """Return the bytes of the script; none where there is none any more."""
        try:
            return self._source(code)(posixpath.normpath(self._shown))
        except ResourceNotFoundError:
            return b""

    @property
    def _shown(self) -> str:
        return str(self.contract.run["script"])

    def _trusted_script(self, directory: Path) -> Path:
        script: Path = (directory / self._shown).resolve()
        if not script.is_relative_to(directory):
            raise InvalidSkillError(
                f"The contract's run.script {self._shown!r} lies outside the skill"
            )
        return script

    def _refuse_excess(self, report: Report) -> None:
        """Raise where the script was stopped because it printed or wrote too much."""
        if report.finished.flooded:
            raise ToolExecutionError(
                f"The script printed more than {self.limits.stdout:,} bytes and was "
                "stopped; the rest was cut off",
                details={"stdout_bytes_kept": self.limits.stdout, "cut": True},
                suggested_action="Ask for less at once: a smaller range, fewer items, "
                "or a file as the result",
            )
        if report.finished.full:
            raise ToolExecutionError(
                "The script was stopped: its files grew by more than "
                f"{self.limits.workspace:,} bytes, or a process held more than "
                f"{self.limits.memory:,} bytes of memory",
                suggested_action="Ask for less at once; the host can set "
                "SkillRuntime(script_limits=...)",
            )

    def _refuse_failure(self, report: Report, start: _Start) -> NoReturn:
        finished = report.finished
        # A parser ends with its fault on stderr: that is the model's mistake, not the
        # script's.
        if start.line is not None:
            _refuse_usage(finished.exit_code, report.text(), start.line)
        is_text = start.line is not None
        stdout, _ = decoded(finished.stdout)
        stdout = report.without_paths(stdout)
        if reported := reported_failure(stdout, is_text=is_text):
            raise ReportedFailureError(reported)
        _refuse_missing_module(report, start)
        message = f"The script {how_it_ended(finished.exit_code)}"
        last = report.last_line()
        if stdout.strip():
            message += f" ({_where_the_output_is(finished.exit_code, start)})"
        elif not last:
            message += " and said nothing"
        action = SILENT
        if last:
            message += f": {last}"
            action = TELL
        elif stdout.strip():
            action = _READ
        details: dict[str, Any] = {"exit_code": finished.exit_code}
        if withheld := self.withheld(start.grants, start.context.code):
            details["not_granted"] = list(withheld)
            action += f". It ran without {', '.join(withheld)}: "
            action += how_to_grant(self.skill.name, withheld)
        raise ToolExecutionError(message, details=details, suggested_action=action)


_READ = "Read the output in data"


def _where_the_output_is(exit_code: int, start: _Start) -> str:
    """Return where the output of a failed script is, and what it may be."""
    where = "its output is in data"
    # The author of a contract says which codes are results, the author of any other
    # script does not; a signal is never one.
    if start.line is None or exit_code < 0:
        return where
    from skillruntime.derive.script_output import FINDINGS

    return f"{where}; {FINDINGS}"


def _note_printed(report: Report, start: _Start) -> None:
    """Note for the envelope what a script printed that has no result."""
    printed = failed_output(report, is_text=start.line is not None)
    if printed.data is not None:
        start.context.execution["output"] = printed.data
    # Where it ended with 0, the error is about what it printed, and names this.
    if report.finished.exit_code != 0:
        _note_warning(printed, start)


def _note_warning(printed: Printed, start: _Start) -> None:
    if printed.warning is not None:
        start.context.execution.setdefault("warnings", []).append(printed.warning)


def _command_line(
    contract: Contract, arguments: dict[str, Any]
) -> tuple[CommandLine | None, list[str]]:
    """Return what is on the command line of the contract's script, and the words that
    *arguments* become there.
    """
    declared = contract.run.get("command_line")
    if declared is None:
        return None, []
    # Most contracts have none.
    from skillruntime.derive.command_line import CommandLine, to_argv

    line = CommandLine.from_dict(declared)
    return line, to_argv(line, arguments)


def _refuse_missing_module(report: Report, start: _Start) -> None:
    """Raise `ToolNotAvailableError` where a Python script imports a module that it does
    not declare.
    """
    stderr = report.finished.stderr.decode("utf-8", "replace")
    named = _MISSING_MODULE.search(stderr)
    if start.script.suffix != ".py" or named is None:
        return
    module = named[1].partition(".")[0]
    if _is_own_module(module, start):
        return
    raise ToolNotAvailableError(
        f"The script imports {module!r}, which is not installed, and does not declare "
        "it",
        suggested_action="Ask the user to install the package that provides "
        f"{module!r}",
    )


def _is_own_module(module: str, start: _Start) -> bool:
    """Return whether the skill itself has *module*, at its root or in a directory from
    there to the script: then no package would help, and the fault is in the skill.
    """
    directory = start.script.parent
    while directory.is_relative_to(start.directory):
        if (directory / module).is_dir() or (directory / f"{module}.py").exists():
            return True
        directory = directory.parent
    return False


def _refuse_usage(exit_code: int, stderr: str, line: CommandLine) -> None:
    """Raise `SkillInputError` where it is the script's own parser that refused an
    argument.
    """
    from skillruntime.derive.script_output import usage_errors

    errors = usage_errors(exit_code, stderr, line)
    if errors:
        raise SkillInputError(
            "The script's own parser refused the arguments", skill_errors=errors
        )
