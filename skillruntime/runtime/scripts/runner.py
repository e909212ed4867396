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
import re
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio.to_thread

from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.secret_names import is_secret_name
from skillruntime.errors import (
    AccessDeniedError,
    ErrorCode,
    InvalidSkillError,
    SkillInputError,
    ToolExecutionError,
    ToolNotAvailableError,
)
from skillruntime.runtime.error_responses import TELL
from skillruntime.runtime.files.skill_copy import SkillCopy, copy_skill
from skillruntime.runtime.grants import Grants, requirements_of
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
from skillruntime.runtime.scripts.readiness import (
    Missing,
    Source,
    how_to_grant,
    interpreter_from_lock,
    missing_of,
    read_head,
    refuse_if_missing,
)
from skillruntime.runtime.scripts.result import (
    Report,
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
        finished = await self._run(start.sandbox, command, context)
        # Before anything reads the output: no error, log or result is made of text that
        # still has them.
        return self._result(without(finished, secrets), start)

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
            variables=self._variables(grants),
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
        readable: tuple[Path, ...] = ()
        if interpreter:
            readable = interpreter_paths(interpreter[0])
            if is_confined:
                # A script that starts `python` again means the interpreter that runs
                # it, with its packages.
                directory = Path(interpreter[0]).parent
                environment["PATH"] = f"{directory}{os.pathsep}{environment['PATH']}"
        return SandboxCommand(
            (*interpreter, str(start.script), *start.words),
            start.workspace,
            start.stdin,
            environment,
            skills=(start.directory,),
            readable=readable,
            writable=(start.workspace, *map(Path, start.grants.write)),
            limits=self.limits,
            network=start.grants.network,
        )

    def _result(self, finished: Finished, start: _Start) -> Any:
        """Return what the script printed, which ended as *finished* says.

        Raises:
            SkillRuntimeError: it failed, printed too much or nothing.
        """
        shortened = shortened_paths(
            (start.directory, self.skill.name), (start.workspace, "workspace")
        )
        report = Report(finished, shortened)
        if finished.stderr:
            _log.debug("%s wrote to stderr:\n%s", start.context.name, report.text())
        self._refuse_excess(report)
        if finished.exit_code != 0:
            self._refuse_failure(report, start)
        if start.line is None:
            return parse_json_output(finished, report)
        return parse_text_output(finished.stdout)

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

    def _variables(self, grants: Grants) -> tuple[str, ...]:
        """Return the variables that the script sees: a trusted skill gets what it asks
        for, another what is granted.
        """
        names = [*grants.environment, *self.environment]
        if self.skill.trusted:
            asked = requirements_of(self.contract)
            names = [*asked.environment, *asked.optional, *names]
        return tuple(dict.fromkeys(names))

    def _withheld(self, given: tuple[str, ...]) -> list[str]:
        """Return the variables that the contract names as optional, that are set here,
        and that were not given.
        """
        withheld = []
        for name in requirements_of(self.contract).optional:
            if name in os.environ and name not in given:
                withheld.append(name)
        return withheld

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
                details={
                    "stdout_bytes_kept": self.limits.stdout,
                    "cut": True,
                    **report.details(),
                },
                suggested_action="Ask for less at once: a smaller range, fewer items, "
                "or a file as the result",
            )
        if report.finished.full:
            raise ToolExecutionError(
                "The script was stopped: its files grew by more than "
                f"{self.limits.workspace:,} bytes, or a process held more than "
                f"{self.limits.memory:,} bytes of memory",
                details=report.details(),
                suggested_action="Ask for less at once; the host can set "
                "SkillRuntime(script_limits=...)",
            )

    def _refuse_failure(self, report: Report, start: _Start) -> NoReturn:
        finished = report.finished
        # A parser ends with its fault on stderr: that is the model's mistake, not the
        # script's.
        if start.line is not None:
            _refuse_usage(finished.exit_code, report.text(), start.line)
        if reported := reported_failure(report.without_paths(finished.stdout)):
            raise ReportedFailureError(reported)
        _refuse_missing_module(report, start.script)
        message = f"The script {how_it_ended(finished.exit_code)}"
        if last := report.last_line():
            message += f": {last}"
        else:
            message += " and said nothing"
        details = {"exit_code": finished.exit_code, **report.details()}
        action = TELL
        if withheld := self._withheld(start.variables):
            details["not_granted"] = withheld
            action += f". It ran without {', '.join(withheld)}: "
            action += how_to_grant(self.skill.name, withheld)
        raise ToolExecutionError(message, details=details, suggested_action=action)


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


def _refuse_missing_module(report: Report, script: Path) -> None:
    """Raise `ToolNotAvailableError` where a Python script imports a module that it does
    not declare.
    """
    stderr = report.finished.stderr.decode("utf-8", "replace")
    named = _MISSING_MODULE.search(stderr)
    if script.suffix != ".py" or named is None:
        return
    module = named[1].partition(".")[0]
    # The same name beside the script: it was found, so the fault is in the skill and no
    # package would help.
    beside = script.parent / module
    if beside.is_dir() or beside.with_name(f"{module}.py").exists():
        return
    raise ToolNotAvailableError(
        f"The script imports {module!r}, which is not installed, and does not declare "
        "it",
        details=report.details(),
        suggested_action="Ask the user to install the package that provides "
        f"{module!r}",
    )


def _refuse_usage(exit_code: int, stderr: str, line: CommandLine) -> None:
    """Raise `SkillInputError` where it is the script's own parser that refused an
    argument.
    """
    from skillruntime.derive.script_output import read_failure

    errors = read_failure(exit_code, stderr, line)
    if errors[0].code is not ErrorCode.TOOL_EXECUTION_FAILED:
        raise SkillInputError(
            "The script's own parser refused the arguments", skill_errors=errors
        )
