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
    Said,
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
        trusted = self.skill.trusted
        return missing_of(
            self.contract,
            self._source(code),
            granted,
            is_trusted=trusted,
            skill=self.skill.name,
        )

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the script once and return the JSON value that it printed.

        Raises:
            InvalidSkillError: the skill has no such script, or it is not what was
                locked. AccessDeniedError: the skill is not trusted, and has no grant
                for what it needs, or no working sandbox. ToolNotAvailableError: an
                interpreter, a package or an environment variable is missing.
                ToolExecutionError: it failed, or printed more than it may.
                SkillOutputError: it printed nothing, or something other than one JSON
                value. SkillInputError: its own parser refused an argument, or its
                command line cannot express it.
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
        directory = (
            self.skill.directory.resolve()
            if context.code is None
            else context.code.directory
        )
        script = (
            self._trusted_script(directory)
            if context.code is None
            else context.code.script(self._shown)
        )
        line, words = _command_line(self.contract, arguments)
        # surrogatepass: a model may send half of a surrogate pair, and the script
        # decides what it makes of it.
        stdin = (
            b""
            if line
            else json.dumps(arguments, ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            )
        )
        workspace = (
            context.workspace
            if self.skill.trusted
            else await anyio.to_thread.run_sync(context.open_workspace)
        )
        sandbox = await self._sandbox(context)
        variables = self._variables(grants)
        command = self._command(
            (str(script), *words), stdin, workspace, variables, context, sandbox
        )
        # Before it runs, so that an execution that is cancelled or does not start is
        # recorded with its level too.
        context.execution["sandbox"] = sandbox.level
        if recorded := grants.to_dict():
            context.execution["grants"] = recorded
        secrets = [
            command.environment[name]
            for name in variables
            if self._is_secret(name, command)
        ]
        context.execution["secrets"] = worth_masking(secrets)
        finished = await self._run(sandbox, command, context)
        # Before anything reads the output: no error, log or result is made of text that
        # still has them.
        finished = without(finished, secrets)
        said = Said(
            finished,
            shortened_paths((directory, self.skill.name), (workspace, "workspace")),
        )
        if finished.stderr:
            _log.debug("%s wrote to stderr:\n%s", context.name, said.text())
        self._refuse_excess(finished, said)
        if finished.exit_code != 0:
            self._refuse_failure(
                finished, said, script, self._withheld(variables), line
            )
        return (
            parse_json_output(finished, said)
            if line is None
            else parse_text_output(finished.stdout)
        )

    def _command(
        self,
        words: tuple[str, ...],
        stdin: bytes,
        workspace: Path,
        variables: tuple[str, ...],
        context: CallContext,
        sandbox: Sandbox,
    ) -> SandboxCommand:
        """Return the command that runs the script, the first of *words*, with what it
        is granted.
        """
        grants = context.grants | self.grants
        prepared = interpreter_from_lock(self._shown, self._source(context.code))
        interpreter = interpreter_of(words[0]) if prepared is None else (prepared,)
        environment = script_environment(variables, is_confined=sandbox.level != "none")
        if sandbox.level != "none" and interpreter:
            # A script that starts `python` again means the interpreter that runs it,
            # with its packages.
            environment["PATH"] = (
                f"{Path(interpreter[0]).parent}{os.pathsep}{environment['PATH']}"
            )
        return SandboxCommand(
            (*interpreter, *words),
            workspace,
            stdin,
            environment,
            skills=(
                self.skill.directory.resolve()
                if context.code is None
                else context.code.directory,
            ),
            readable=interpreter_paths(interpreter[0]) if interpreter else (),
            writable=(workspace, *map(Path, grants.write)),
            limits=self.limits,
            network=grants.network,
        )

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
                suggested_action="Tell the user: the host can restore the directory, or name the "
                "one behind the link",
            ) from error
        except OSError as error:
            raise ToolNotAvailableError(
                f"The script {self._shown} cannot be started: "
                f"{error.strerror or type(error).__name__}",
                suggested_action=f"Tell the user to make {self._shown} executable, or to install "
                "its interpreter",
            ) from error

    async def _sandbox(self, context: CallContext) -> Sandbox:
        """Return where this script runs: decided by the host and the skill's source,
        never by the call.
        """
        if (
            self.skill.trusted
            and not self.sandbox_trusted
            and not context.has_untrusted_files()
        ):
            return PlainProcess()
        from skillruntime.runtime.sandbox.levels import open_sandbox  # imports ctypes

        return await open_sandbox(self.sandbox)

    def _variables(self, grants: Grants) -> tuple[str, ...]:
        """Return the variables that the script sees: a trusted skill gets what it asks
        for, another what is granted.
        """
        asked = requirements_of(self.contract)
        own = (*asked.environment, *asked.optional) if self.skill.trusted else ()
        return tuple(dict.fromkeys((*own, *grants.environment, *self.environment)))

    def _withheld(self, given: tuple[str, ...]) -> list[str]:
        """Return the variables that the contract names as optional, that are set here,
        and that were not given.
        """
        return [
            name
            for name in requirements_of(self.contract).optional
            if name in os.environ and name not in given
        ]

    def _is_secret(self, name: str, command: SandboxCommand) -> bool:
        """Whether the value of a variable is kept out of results: what a contract must
        have, or a secret's name.
        """
        is_secret = name in requirements_of(
            self.contract
        ).environment or is_secret_name(name)
        return is_secret and name in command.environment

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

    def _refuse_excess(self, finished: Finished, said: Said) -> None:
        """Raise where the script was stopped because it printed or wrote too much."""
        if finished.flooded:
            raise ToolExecutionError(
                f"The script printed more than {self.limits.stdout:,} bytes and was "
                "stopped; the rest was cut off",
                details={
                    "stdout_bytes_kept": self.limits.stdout,
                    "cut": True,
                    **said.details(),
                },
                suggested_action="Ask for less at once: a smaller range, fewer items, or a file as "
                "the result",
            )
        if finished.full:
            raise ToolExecutionError(
                "The script was stopped: its files grew by more than "
                f"{self.limits.workspace:,} bytes, or a process held more than "
                f"{self.limits.memory:,} bytes of memory",
                details=said.details(),
                suggested_action="Ask for less at once; the host can set "
                "SkillRuntime(script_limits=...)",
            )

    def _refuse_failure(
        self,
        finished: Finished,
        said: Said,
        script: Path,
        withheld: list[str],
        line: CommandLine | None,
    ) -> NoReturn:
        # A parser ends with its fault on stderr: that is the model's mistake, not the
        # script's.
        if line is not None:
            _refuse_usage(finished.exit_code, said.text(), line)
        if reported := reported_failure(said.without_paths(finished.stdout)):
            raise ReportedFailureError(reported)
        _refuse_missing_module(finished, said, script)
        how = how_it_ended(finished.exit_code)
        last = said.last_line()
        raise ToolExecutionError(
            f"The script {how}: {last}"
            if last
            else f"The script {how} and said nothing",
            details={
                "exit_code": finished.exit_code,
                **said.details(),
                **({"not_granted": withheld} if withheld else {}),
            },
            suggested_action=TELL
            + (
                f". It ran without {', '.join(withheld)}: "
                + how_to_grant(self.skill.name, withheld)
                if withheld
                else ""
            ),
        )


def _command_line(
    contract: Contract, arguments: dict[str, Any]
) -> tuple[CommandLine | None, list[str]]:
    """Return what is on the command line of the contract's script, and the words that
    *arguments* become there.
    """
    declared = contract.run.get("command_line")
    if declared is None:
        return None, []
    from skillruntime.derive.command_line import (
        CommandLine,
        to_argv,
    )  # most contracts have none

    line = CommandLine.from_dict(declared)
    return line, to_argv(line, arguments)


def _refuse_missing_module(finished: Finished, said: Said, script: Path) -> None:
    """Raise `ToolNotAvailableError` where a Python script imports a module that it does
    not declare.
    """
    found = _MISSING_MODULE.search(finished.stderr.decode("utf-8", "replace"))
    if script.suffix != ".py" or not found:
        return
    module = found[1].partition(".")[0]
    # The same name beside the script: it was found, so the fault is in the skill and no
    # package would help.
    beside = script.parent / f"{module}.py"
    if not beside.exists() and not (script.parent / module).is_dir():
        raise ToolNotAvailableError(
            f"The script imports {module!r}, which is not installed, and does not "
            "declare it",
            details=said.details(),
            suggested_action=f"Ask the user to install the package that provides {module!r}",
        )


def _refuse_usage(exit_code: int, said: str, line: CommandLine) -> None:
    """Raise `SkillInputError` where it is the script's own parser that refused an
    argument.
    """
    from skillruntime.derive.script_output import read_failure

    errors = read_failure(exit_code, said, line)
    if errors[0].code is not ErrorCode.TOOL_EXECUTION_FAILED:
        raise SkillInputError(
            "The script's own parser refused the arguments", skill_errors=errors
        )
