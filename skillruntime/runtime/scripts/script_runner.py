"""Run a skill's script: arguments as one JSON object on stdin, one JSON value on
stdout, and nothing inherited.

With ``run.command_line`` in its contract, an ordinary script gets its arguments as
words and may print any text. A script runs without a shell, in the session's workspace,
with an environment from an allow list. The script of an untrusted skill always runs in
a sandbox, from the copy of its skill that was approved; that of a trusted one runs
there only if the host requests it.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import visible_line
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.secret_names import is_secret_name
from skillruntime.errors import (
    AccessDeniedError,
    InvalidSkillError,
    ResourceNotFoundError,
    SkillInputError,
    SkillOutputError,
    SkillRuntimeError,
    ToolExecutionError,
    ToolNotAvailableError,
)
from skillruntime.lazy_patterns import lazy_pattern
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
from skillruntime.runtime.sandbox.without_links import (
    WritablePathError,
    is_unmeasurable,
)
from skillruntime.runtime.scripts.interpreters import interpreter_of, script_environment
from skillruntime.runtime.scripts.process import PlainProcess
from skillruntime.runtime.scripts.python_start import is_started_as_module, python_words
from skillruntime.runtime.scripts.readiness import (
    Missing,
    Source,
    interpreter_from_lock,
    missing_of,
    needed_variables,
    read_head,
    refuse_if_missing,
    withheld_variables,
    without_grant,
)
from skillruntime.runtime.scripts.refusals import (
    Ungranted,
    missed_words,
    opens_connections,
    shows_refused_network,
    shows_refused_path,
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
from skillruntime.runtime.waiting import in_thread

if TYPE_CHECKING:
    from skillruntime.derive.command_line import CommandLine

__all__ = ["ScriptRunner"]

_log = logging.getLogger("skillruntime.runtime")

# Only plain names: the script writes this text, and the error asks the user to install
# the named package.
_MISSING_MODULE = lazy_pattern(
    r"^ModuleNotFoundError: No module named '([\w.]+)'", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class _Start:
    """The start of one call: the script, its words, its directory and its
    environment.
    """

    context: CallContext
    grants: Grants
    directory: Path
    """The directory of the skill or of its copy."""
    script: Path
    line: CommandLine | None
    """The form of its command line; None for a script that reads JSON from stdin."""
    words: list[str]
    stdin: bytes
    workspace: Path
    sandbox: Sandbox
    variables: tuple[str, ...]
    """The names of the variables that it sees beyond the ordinary ones."""

    @property
    def is_confined(self) -> bool:
        return self.sandbox.level != "none"


@dataclass(frozen=True, slots=True)
class ScriptRunner:
    """Runs the script that a contract names in ``run.script``.

    *environment* names further variables that the host gives every script. *grants* are
    the host's grants for this skill; the grants for one call are in its `CallContext`.
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
    plain: Sandbox = field(default_factory=PlainProcess)
    """Where the script of a trusted skill runs without a sandbox."""

    stops_when_cancelled = True

    def missing(
        self,
        grants: Grants,
        code: SkillCopy | None = None,
        dotfiles: tuple[str, ...] = (),
    ) -> tuple[Missing, ...]:
        """Return what the script lacks on this machine with these *grants*; *code* is
        its copy, if it exists.

        The variables that the host gives every script count as granted. *dotfiles* are
        the named dotfiles without a grant.
        """
        return missing_of(
            self.contract,
            self._source(code),
            grants | self.grants,
            is_trusted=self.skill.trusted,
            skill=self.skill.name,
            passed=self.environment,
            dotfiles=dotfiles,
        )

    def lacks_network(self, grants: Grants, code: SkillCopy | None = None) -> bool:
        """Return whether the script opens connections but runs in a sandbox without
        network.

        It may also work without them, so this does not stop a call.
        """
        if self.skill.trusted and not self.sandbox_trusted:
            return False
        if (grants | self.grants).network:
            return False
        return opens_connections(self._script_text(code))

    def withheld(
        self, grants: Grants, code: SkillCopy | None = None
    ) -> tuple[str, ...]:
        """Return the optional variables that are set in this process and that the
        script does not get with *grants*.

        The contract names them as optional, or the script reads them. A missing one
        does not stop a call.
        """
        given = self._variables(grants | self.grants, code)
        optional = requirements_of(self.contract).optional
        named = [name for name in optional if name in os.environ and name not in given]
        read = withheld_variables(self._script_text(code), self._shown, given)
        return tuple(dict.fromkeys((*named, *read)))

    def needs_event_loop(self, context: CallContext) -> bool:
        """Return whether a call needs a full event loop, not only the functions of
        `waiting`: testing a sandbox needs tasks, and so does a process on a system
        other than Linux.
        """
        return sys.platform != "linux" or not self._is_plain(context)

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the script once and return the JSON value that it printed.

        Raises:
            InvalidSkillError: the script is missing, or differs from the locked one.
            AccessDeniedError: the untrusted skill lacks a grant or a working sandbox.
            ToolNotAvailableError: an interpreter, a package or an environment variable
                is missing.
            ToolExecutionError: the script failed, or printed more than its limit.
            SkillOutputError: the script printed nothing, or something other than one
                JSON value.
            SkillInputError: the script's own parser refused an argument, or its command
                line cannot express it.
        """
        pinned = self.skill.verify()
        if pinned is not None and self.skill.trusted and context.code is None:
            # For a frozen skill the hashed bytes run, not the current content of its
            # directory.
            with await in_thread(copy_skill, self.skill, self.contract) as code:
                return await self(arguments, replace(context, code=code))
        if not self.skill.trusted and context.code is None:
            # By construction, the files of an untrusted skill never run in their own
            # directory.
            raise AccessDeniedError(
                f"The script of the untrusted skill {self.skill.name!r} was not "
                "approved"
            )
        if pinned is not None and context.code is not None:
            context.code.require(pinned, self.skill.name)
        # Check again, although the call was prepared with this check: a variable or
        # package may have gone since the host was asked.
        grants = context.grants | self.grants
        refuse_if_missing(self.missing(grants, context.code))
        start = await self._start(arguments, context, grants)
        command = self._command(start)
        secrets = self._secrets(start, command)
        # Noted before the run, so that the level is also recorded for an execution that
        # is cancelled or does not start.
        context.execution["sandbox"] = start.sandbox.level
        if recorded := grants.to_dict():
            context.execution["grants"] = recorded
        context.execution["secrets"] = worth_masking(secrets)
        command = replace(
            command,
            on_output=partial(self._note_unfinished, start, secrets),
            on_still_running=partial(context.execution.__setitem__, "still_running"),
        )
        finished = await self._run(start.sandbox, command, context)
        report = self._report(finished, start, secrets)
        self._note_end(report, start)
        try:
            result = self._result(report, start)
        except SkillRuntimeError as error:
            # Everything that a script printed reaches the caller.
            _note_printed(report, start)
            # The script's own report does not tell which access it lacked.
            if isinstance(error, ReportedFailureError | SkillOutputError):
                self._warn_of(self._ungranted_after_failure(report, start), start)
            raise
        self._warn_of(_shown_refusals(report, start), start)
        return result

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
            # surrogatepass: a model may send half of a surrogate pair, which the script
            # must handle.
            document = json.dumps(arguments, ensure_ascii=False)
            stdin = document.encode("utf-8", "surrogatepass")
        if self.skill.trusted:
            workspace = context.workspace
        else:
            # In a thread, because the files that the call names are copied first.
            workspace = await in_thread(context.open_workspace)
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
        """Return the command that runs the script with its grants."""
        source = self._source(start.context.code)
        prepared = interpreter_from_lock(self._shown, source)
        if prepared is None:
            interpreter = interpreter_of(start.script)
        else:
            interpreter = (prepared,)
        is_confined = start.is_confined
        environment = script_environment(start.variables, is_confined=is_confined)
        # A sandbox hides everything outside the skill, and the directory around the
        # copy of an untrusted skill is not its plugin.
        environment |= directory_variables(start.directory, looks_above=not is_confined)
        readable: tuple[Path, ...] = ()
        if interpreter and is_confined:
            from skillruntime.runtime.sandbox.readable_paths import interpreter_paths

            readable = interpreter_paths(interpreter[0])
            # If a script starts `python`, it should get the interpreter that runs it,
            # with its packages.
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
        """Return the words with which the interpreter starts the script."""
        if start.script.suffix.lower() != ".py":
            return (str(start.script),)
        path = start.script.relative_to(start.directory).as_posix()
        as_module = is_started_as_module(self._instructions(source), path)
        return python_words(start.directory, start.script, as_module=as_module)

    def _instructions(self, source: Source) -> str:
        """Return the text of SKILL.md; empty if the file no longer exists."""
        try:
            data = source(os.path.basename(self.skill.metadata.path))  # noqa: PTH119
        except ResourceNotFoundError:
            return ""
        return data.decode("utf-8", "replace")

    def _report(self, finished: Finished, start: _Start, secrets: list[str]) -> Report:
        """Return the script's output without *secrets*, so that errors, logs and
        results never contain them.
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
        """Note the output that the script had written when its deadline ended it."""
        finished = Finished(0, stdout, stderr, flooded=True)
        report = self._report(finished, start, secrets)
        self._note_end(report, start)
        _note_printed(report, start)
        self._warn_of(self._ungranted_after_failure(report, start), start)

    def _result(self, report: Report, start: _Start) -> Any:
        """Return the result of the script, which ended as *report* says.

        Raises:
            SkillRuntimeError: the script failed, or printed too much or nothing.
        """
        finished, execution = report.finished, start.context.execution
        self._refuse_excess(report, start)
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

    def _ungranted_after_failure(self, report: Report, start: _Start) -> Ungranted:
        """Return the missing access that may explain the failure, judged by the
        script's output and source.
        """
        grants, code = start.grants, start.context.code
        lacking = Grants(environment=self.withheld(grants, code))
        if start.is_confined:
            lacking |= Grants(network=self.lacks_network(grants, code))
            lacking |= start.context.uncopied([])
        shown = _shown_refusals(report, start)
        return Ungranted(lacking | shown.grants, shown.outside)

    def _warn_of(self, ungranted: Ungranted, start: _Start) -> None:
        if ungranted:
            warnings = start.context.execution.setdefault("warnings", [])
            warnings.append(ungranted.sentence(self.skill.name, start.grants))

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
        """Return the sandbox for this script; the host and the skill's source choose
        it, never the call.
        """
        if self._is_plain(context):
            return self.plain
        from skillruntime.runtime.sandbox.levels import open_sandbox  # imports ctypes

        return await open_sandbox(self.sandbox)

    def _is_plain(self, context: CallContext) -> bool:
        """Return whether the script runs outside any sandbox."""
        if not self.skill.trusted or self.sandbox_trusted:
            return False
        # An untrusted script may have left files that this one would run.
        return not context.has_untrusted_files()

    def _variables(self, grants: Grants, code: SkillCopy | None) -> tuple[str, ...]:
        """Return the variables for the script: a trusted skill gets the variables that
        it asks for, an untrusted one those that are granted.
        """
        names = [*grants.environment, *self.environment]
        if self.skill.trusted:
            asked = requirements_of(self.contract)
            source = self._script_text(code)
            needed = needed_variables(self.contract, source, self._shown)
            free = without_grant(needed)
            names = [*asked.environment, *asked.optional, *free, *names]
        # The variables for the skill's directory do not come from the host, and are not
        # secret.
        given = dict.fromkeys(name for name in names if name not in DIRECTORY_VARIABLES)
        return tuple(given)

    def _secrets(self, start: _Start, command: SandboxCommand) -> list[str]:
        """Return the values that are kept out of results: the values of required
        variables, and of variables named like secrets.
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
        """Return the function that reads the skill's files: from the approved copy,
        else from its directory.
        """
        if code is None:
            return partial(read_head, str(self.skill.directory), self.skill.identity)
        return partial(read_head, str(code.directory), None)

    def _script_text(self, code: SkillCopy | None) -> bytes:
        """Return the bytes of the script; empty if it no longer exists."""
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

    def _refuse_excess(self, report: Report, start: _Start) -> None:
        """Raise an error if the script was stopped because it printed or wrote too
        much.
        """
        if report.finished.flooded:
            raise ToolExecutionError(
                f"The script printed more than {self.limits.stdout:,} bytes and was "
                "stopped; the rest was cut off",
                details={"stdout_bytes_kept": self.limits.stdout, "cut": True},
                suggested_action="Ask for less at once: a smaller range, fewer items, "
                "or a file as the result",
            )
        if report.finished.full and report.finished.excess:
            raise ToolExecutionError(
                f"The script was stopped: it had {report.finished.excess}, in all its "
                "processes together",
                suggested_action="Ask for less at once",
            )
        if report.finished.full and is_unmeasurable(str(start.workspace)):
            raise ToolExecutionError(
                "The script was stopped: it made directories more than 64 levels deep, "
                "or that may not be listed, whose size cannot be measured",
                suggested_action="Ask for files in fewer directories",
            )
        if report.finished.full:
            raise ToolExecutionError(
                "The script was stopped: its files grew by more than "
                f"{self.limits.workspace:,} bytes, or its processes together held "
                f"more than {self.limits.memory:,} bytes of memory",
                suggested_action="Ask for less at once; the host can set "
                "SkillRuntime(script_limits=...)",
            )

    def _refuse_failure(self, report: Report, start: _Start) -> NoReturn:
        finished = report.finished
        # An argument parser reports its fault on stderr: this is the model's mistake,
        # not the script's.
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
        ungranted = self._ungranted_after_failure(report, start)
        if ungranted:
            details["not_granted"] = ungranted.to_dict()
            action += f". {ungranted.sentence(self.skill.name, start.grants)}"
        raise ToolExecutionError(message, details=details, suggested_action=action)


_READ = "Read the output in data"


def _where_the_output_is(exit_code: int, start: _Start) -> str:
    """Return a sentence that says where the output of a failed script is, and what it
    may be.
    """
    where = "its output is in data"
    # The author of a contract declares which exit codes are results; other authors do
    # not. A signal is never a result.
    if start.line is None or exit_code < 0:
        return where
    from skillruntime.derive.script_output import FINDINGS

    return f"{where}; {FINDINGS}"


def _shown_refusals(report: Report, start: _Start) -> Ungranted:
    """Return the access that the sandbox refused, judged by the script's output."""
    if not start.is_confined:
        return Ungranted()
    stdout, _ = decoded(report.finished.stdout)
    written = f"{report.without_paths(stdout)}\n{report.text()}"
    lacking = Grants()
    if not start.grants.network and shows_refused_network(written):
        lacking |= Grants(network=True)
    if words := missed_words(written):
        lacking |= start.context.uncopied(words)
    return Ungranted(lacking, shows_refused_path(written, start.grants.write))


def _note_printed(report: Report, start: _Start) -> None:
    """Note for the envelope the output of a script without a result."""
    printed = failed_output(report, is_text=start.line is not None)
    if printed.data is not None:
        start.context.execution["output"] = printed.data
    # If the exit code was 0, the error is about the output, and already quotes it.
    if report.finished.exit_code != 0:
        _note_warning(printed, start)


def _note_warning(printed: Printed, start: _Start) -> None:
    if printed.warning is not None:
        start.context.execution.setdefault("warnings", []).append(printed.warning)


def _command_line(
    contract: Contract, arguments: dict[str, Any]
) -> tuple[CommandLine | None, list[str]]:
    """Return the command line of the contract's script, and the words for *arguments*
    on it.
    """
    declared = contract.run.get("command_line")
    if declared is None:
        return None, []
    # Most contracts have no command line.
    from skillruntime.derive.command_line import CommandLine, to_argv

    line = CommandLine.from_dict(declared)
    return line, to_argv(line, arguments)


def _refuse_missing_module(report: Report, start: _Start) -> None:
    """Raise `ToolNotAvailableError` if a Python script imports a module that it does
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
    """Return whether the skill itself has *module*, in a directory between its root and
    the script. Then installing a package would not help: the skill is faulty.
    """
    directory = start.script.parent
    while directory.is_relative_to(start.directory):
        if (directory / module).is_dir() or (directory / f"{module}.py").exists():
            return True
        directory = directory.parent
    return False


def _refuse_usage(exit_code: int, stderr: str, line: CommandLine) -> None:
    """Raise `SkillInputError` if the script's own parser refused an argument."""
    from skillruntime.derive.script_output import usage_errors

    errors = usage_errors(exit_code, stderr, line)
    if errors:
        raise SkillInputError(
            "The script's own parser refused the arguments", skill_errors=errors
        )
