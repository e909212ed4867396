"""Run a skill's script: arguments as one JSON object on stdin, one JSON value on stdout, and nothing inherited.

A contract with ``run.command_line`` has a script of the ordinary kind: its arguments are words, its output any text.

No shell, the session's workspace as its directory, an environment made of an allow list. The script of an untrusted
skill always runs in a sandbox; that of a trusted one only if the host requests it.
"""

from __future__ import annotations

import json
import logging
import math
import os
import re
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Contract
from skillruntime.derive.command_line import CommandLine, to_argv
from skillruntime.derive.inline_metadata import parse_inline_metadata
from skillruntime.derive.script_output import read_failure, read_output
from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillInputError,
    SkillOutputError,
    ToolExecutionError,
    ToolNotAvailableError,
)
from skillruntime.runtime.besides_result import text_besides_result
from skillruntime.runtime.installed_packages import install_command, missing_packages
from skillruntime.runtime.process import PlainProcess
from skillruntime.runtime.runners import CallContext, ReportedFailureError
from skillruntime.runtime.sandbox.levels import open_sandbox
from skillruntime.runtime.sandbox.protocol import Finished, Limits, Sandbox, SandboxCommand
from skillruntime.runtime.sandbox.readable_paths import interpreter_paths

__all__ = ["ScriptRunner", "environment_asked", "script_environment"]

_log = logging.getLogger("skillruntime.runtime")

_INTERPRETERS: Mapping[str, tuple[str, ...]] = {
    ".py": (sys.executable,),
    ".sh": ("bash", "sh"),
    ".bash": ("bash",),
    ".js": ("node",),
    ".mjs": ("node",),
    ".cjs": ("node",),
    ".rb": ("ruby",),
    ".pl": ("perl",),
}

_LOCALE = ("LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ")
_PASSED = (
    *("PATH", "HOME", *_LOCALE, "TMPDIR", "TEMP", "TMP"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT", "USERPROFILE", "XDG_CACHE_HOME"),
)
_SANDBOX_PATH = "/usr/local/bin:/usr/bin:/bin"

_MISSING_MODULE = re.compile(r"^ModuleNotFoundError: No module named '([^']+)'", re.MULTILINE)
_IMPORT_ERROR = re.compile(r"^ImportError: .*? from '([^']+)'", re.MULTILINE)
_SURROGATE_ESCAPE = re.compile(r"\\[uU][dD][89a-fA-F]")
_QUOTED_LINE = 300  # characters of a script's own words in a message
_QUOTED_TAIL = 600  # characters of them in the details


@dataclass(frozen=True, slots=True)
class ScriptRunner:
    """Runs the script that a contract names in ``run.script``.

    *environment* names further variables that the host lets through, in addition to those that the contract must have
    (``requires.environment``) and those that it takes if they are set (``run.environment``).
    *sandbox* is ``"auto"``, a level, or a `Sandbox`; with *sandbox_trusted* a trusted skill's script runs there too.
    """

    skill: Skill
    contract: Contract
    environment: tuple[str, ...] = ()
    sandbox: str | Sandbox = "auto"
    sandbox_trusted: bool = False
    limits: Limits = field(default_factory=Limits)

    stops_when_cancelled = True

    async def __call__(self, arguments: dict[str, Any], context: CallContext) -> Any:
        """Run the script once and return the JSON value that it printed.

        Raises:
            InvalidSkillError: the skill has no such script.
            AccessDeniedError: the skill is not trusted, and this machine has no working sandbox.
            ToolNotAvailableError: an interpreter, a package or an environment variable is missing.
            ToolExecutionError: it failed, or printed more than it may.
            SkillOutputError: it printed nothing, or something other than one JSON value.
            SkillInputError: its own parser refused an argument, or its command line cannot express it.
        """
        self.skill.verify()
        script = self._script()
        declared = self.contract.run.get("command_line")
        line = None if declared is None else CommandLine.from_dict(declared)
        words = [] if line is None else to_argv(line, arguments)
        stdin = b"" if line else json.dumps(arguments, ensure_ascii=False).encode("utf-8", "surrogatepass")
        interpreter = _interpreter(script)
        asked = environment_asked(self.contract)
        sandbox = await self._sandbox()
        environment = script_environment(
            self.contract.requires.get("environment") or (),
            (*asked, *self.environment),
            is_confined=sandbox.level != "none",
        )
        if sandbox.level != "none" and interpreter:
            environment["PATH"] = f"{Path(interpreter[0]).parent}{os.pathsep}{environment['PATH']}"
        workspace = context.workspace
        command = SandboxCommand(
            (*interpreter, str(script), *words),
            workspace,
            stdin,
            environment,
            skills=(self.skill.directory.resolve(),),
            readable=interpreter_paths(interpreter[0]) if interpreter else (),
            writable=(workspace,),
            limits=self.limits,
        )
        context.execution["sandbox"] = sandbox.level
        try:
            finished = await sandbox.run(command, on_stopped=partial(context.execution.__setitem__, "stopped"))
        except OSError as error:
            raise ToolNotAvailableError(
                f"The script {self._shown} cannot be started: {error.strerror or type(error).__name__}",
                suggested_action=f"Tell the user to make {self._shown} executable, or to install its interpreter",
            ) from error
        if finished.stderr:
            _log.debug("%s wrote to stderr:\n%s", context.name, finished.stderr.decode("utf-8", "replace"))
        secrets = tuple(environment[name] for name in asked if name in environment)
        said = _Said(finished, _shortened_paths(self.skill.directory, workspace), secrets)
        if finished.flooded:
            self._refuse_flood(said)
        if finished.exit_code != 0:
            if line is not None:
                _refuse_usage(finished.exit_code, said.text(), line)
            self._refuse_failure(finished, said, script)
        if line is not None:
            return self._read_text(finished.stdout.decode("utf-8", "replace"))
        return self._parse(finished, said)

    async def _sandbox(self) -> Sandbox:
        """Return where this script runs: decided by the host and the skill's source, never by the call."""
        if self.skill.trusted and not self.sandbox_trusted:
            return PlainProcess()
        return await open_sandbox(self.sandbox)

    @property
    def _shown(self) -> str:
        return str(self.contract.run["script"])

    def _script(self) -> Path:
        directory = self.skill.directory.resolve()
        script: Path = (directory / self._shown).resolve()
        if not script.is_relative_to(directory):
            raise InvalidSkillError(f"The contract's run.script {self._shown!r} lies outside the skill")
        if not script.is_file():
            raise InvalidSkillError(
                f"The contract's run.script {self._shown!r} is not there",
                suggested_action="Tell the user that the skill is incomplete; no other arguments will help",
            )
        return script

    def _refuse_flood(self, said: _Said) -> NoReturn:
        raise ToolExecutionError(
            f"The script printed more than {self.limits.stdout:,} bytes and was stopped; the rest was cut off",
            details={"stdout_bytes_kept": self.limits.stdout, "cut": True, **said.details()},
            suggested_action="Ask for less at once: a smaller range, fewer items, or a file as the result",
        )

    def _refuse_failure(self, finished: Finished, said: _Said, script: Path) -> NoReturn:
        if reported := _reported(finished.stdout):
            raise ReportedFailureError(reported)
        self._refuse_missing_package(finished, said, script)
        how = _how_it_ended(finished.exit_code)
        last = said.last_line()
        raise ToolExecutionError(
            f"The script {how}: {last}" if last else f"The script {how} and said nothing",
            details={"exit_code": finished.exit_code, **said.details()},
            suggested_action="If the message names an argument, change that; else tell the user what it says",
        )

    def _refuse_missing_package(self, finished: Finished, said: _Said, script: Path) -> None:
        stderr = finished.stderr.decode("utf-8", "replace")
        found = _MISSING_MODULE.search(stderr) or _IMPORT_ERROR.search(stderr)
        if script.suffix != ".py" or not found:
            return
        module = found[1].partition(".")[0]
        declared = parse_inline_metadata(script.read_text("utf-8", "replace")).dependencies
        missing = missing_packages(declared) or [item for item in declared if _names(item, module)]
        if missing:
            command = install_command(missing)
            raise ToolNotAvailableError(
                f"The skill needs {_enumerated(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
                details={"missing_packages": missing, "install": command},
                suggested_action=f"Ask the user to run: {command}",
            )
        beside = script.parent / f"{module}.py"
        if not beside.exists() and not (script.parent / module).is_dir():
            raise ToolNotAvailableError(
                f"The script imports {module!r}, which is not installed, and does not declare it",
                details=said.details(),
                suggested_action=f"Ask the user to install the package that provides {module!r}",
            )

    def _read_text(self, text: str) -> Any:
        """Return the output of a script of the ordinary kind: any text, read as JSON only where it is JSON."""
        output = read_output(text)
        if not isinstance(output, dict) or output.keys() - {"stdout", "cut"}:
            try:
                json.dumps(output, allow_nan=False, ensure_ascii=False).encode("utf-8")
            except ValueError:  # a number that overflows, or half of a surrogate pair
                return {"stdout": text}
        return output

    def _parse(self, finished: Finished, said: _Said) -> Any:
        if not finished.stdout.strip():
            raise SkillOutputError(
                "The script ended without printing a result",
                details=said.details(),
                suggested_action="Tell the user that the skill is at fault; the same call will give the same",
            )
        try:
            return _strict_json(finished.stdout.decode("utf-8"))
        except (ValueError, RecursionError) as error:
            besides = text_besides_result(finished.stdout.decode("utf-8", "replace"))
            if besides:
                raise SkillOutputError(
                    f"The script printed more than its JSON result: {_capped(besides, _QUOTED_LINE)!r}",
                    details={"printed": _capped(besides, _QUOTED_TAIL), **said.details()},
                    suggested_action="Tell the user that the skill is at fault: it must write this to stderr",
                ) from error
            shown = finished.stdout[:80].decode("utf-8", "replace")
            raise SkillOutputError(
                "The script printed something other than one JSON value",
                details={"printed": shown, "fault": _capped(str(error), 120), **said.details()},
                suggested_action="Tell the user that the skill is at fault: it must print one JSON value and write "
                "everything else to stderr",
            ) from error


def environment_asked(contract: Contract) -> tuple[str, ...]:
    """Return the environment variables that *contract* asks for: those it must have, and those it takes if set."""
    stated = (contract.requires.get("environment"), contract.run.get("environment"))
    return tuple(dict.fromkeys(name for names in stated for name in names or () if isinstance(name, str)))


def _refuse_usage(exit_code: int, said: str, line: CommandLine) -> None:
    """Raise `SkillInputError` where it is the script's own parser that refused an argument."""
    errors = read_failure(exit_code, said, line)
    if errors[0].code is not ErrorCode.TOOL_EXECUTION_FAILED:
        raise SkillInputError("The script's own parser refused the arguments", skill_errors=errors)


def script_environment(
    required: tuple[str, ...] | list[str], further: tuple[str, ...] = (), *, is_confined: bool = False
) -> dict[str, str]:
    """Return the environment of a script: an allow list, what the contract requires, and what the host adds.

    In a sandbox (*is_confined*) the list holds the language and the time zone; the sandbox adds its own directories.

    Raises:
        ToolNotAvailableError: a required variable is not set.
    """
    if missing := [name for name in required if name not in os.environ]:
        raise ToolNotAvailableError(
            f"The skill needs the environment {'variable' if len(missing) == 1 else 'variables'} "
            f"{_enumerated(missing)}",
            details={"missing_environment": missing},
            suggested_action=f"Ask the user to set {_enumerated(missing)} and to try again",
        )
    names = (*(_LOCALE if is_confined else _PASSED), *required, *further)
    return {
        **({"PATH": _SANDBOX_PATH} if is_confined else {}),
        **{name: os.environ[name] for name in names if name in os.environ},
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


@dataclass(frozen=True, slots=True)
class _Said:
    """A script's stderr, fit to be quoted: no host paths, no secrets, capped."""

    finished: Finished
    shortened: tuple[tuple[str, str], ...]
    secrets: tuple[str, ...]

    def text(self) -> str:
        text = self.finished.stderr.decode("utf-8", "replace")
        for secret in self.secrets:
            if len(secret) > 3:
                text = text.replace(secret, "***")
        for path, short in self.shortened:
            text = text.replace(path, short)
        return text.strip()

    def last_line(self) -> str:
        lines = self.text().splitlines()
        return _capped(lines[-1].strip(), _QUOTED_LINE) if lines else ""

    def details(self) -> dict[str, Any]:
        """The tail of stderr, where it says more than its last line."""
        text = self.text()
        if "\n" not in text:
            return {}
        return {"stderr": text if len(text) <= _QUOTED_TAIL else "..." + text[-_QUOTED_TAIL:]}


def _interpreter(script: Path) -> tuple[str, ...]:
    names = _INTERPRETERS.get(script.suffix.lower())
    if names is None:
        if os.access(script, os.X_OK):
            return ()
        raise ToolNotAvailableError(
            f"No interpreter is known for {script.name!r}, and the file is not executable",
            suggested_action=f"Tell the user to make {script.name!r} executable, or to use one of: "
            + ", ".join(_INTERPRETERS),
        )
    for name in names:
        if found := shutil.which(name):
            return (found,)
    raise ToolNotAvailableError(
        f"{names[0]!r}, which runs {script.name!r}, is not installed",
        suggested_action=f"Ask the user to install {names[0]!r}",
    )


def _reported(stdout: bytes) -> dict[str, Any] | None:
    """Return the report of a failing script in the form of 31.2, or None."""
    try:
        document = _strict_json(stdout.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(document, dict):
        return None
    has_errors = isinstance(document.get("errors"), list) and bool(document["errors"])
    return document if has_errors or document.get("status") in ("failed", "partial_success") else None


def _shortened_paths(skill: Path, workspace: Path) -> tuple[tuple[str, str], ...]:
    pairs = [(str(skill.resolve()), skill.name), (str(skill), skill.name), (str(workspace), "workspace")]
    pairs += [(sys.prefix, "python"), (sys.base_prefix, "python"), (str(Path.home()), "~")]
    return tuple((path + os.sep, short + "/") for path, short in pairs if len(path) > 1)


def _how_it_ended(exit_code: int) -> str:
    if exit_code >= 0:
        return f"failed with exit code {exit_code}"
    try:
        return f"was ended by {signal.Signals(-exit_code).name}"
    except ValueError:
        return f"was ended by signal {-exit_code}"


def _names(requirement: str, module: str) -> bool:
    """Whether *requirement* is, by its name, the package of *module*."""
    name = re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0]
    return re.sub(r"[-_.]+", "", name).lower() == re.sub(r"[-_.]+", "", module).lower()


def _strict_json(text: str) -> Any:
    """Return the value of *text*, which every JSON reader reads alike.

    Python's reader takes more than RFC 8259: NaN, a number that overflows to infinity (section 6), and half of a
    surrogate pair (section 8.2), which no UTF-8 text can hold. Each would break whoever reads the envelope.
    """
    value = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    if _SURROGATE_ESCAPE.search(text) is not None:
        try:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ValueError("half of a surrogate pair is not a character") from error
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{_capped(text, 40)} is too large for a number")
    return number


def _enumerated(items: list[str]) -> str:
    return items[0] if len(items) == 1 else ", ".join(items[:-1]) + " and " + items[-1]


def _capped(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 3] + "..."
