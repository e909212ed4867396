"""One call of a skill in three frozen values: the request, the target that its name
resolves to, and the prepared call.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import escaped
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.error_responses import TELL
from skillruntime.runtime.files.skill_copy import SkillCopy
from skillruntime.runtime.files.workspace import (
    FILE_LIMIT,
    Identity,
    Workspace,
    is_there,
)
from skillruntime.runtime.function_skill import FunctionSkill
from skillruntime.runtime.grants import Grants
from skillruntime.runtime.runners import CallContext, Runner

if TYPE_CHECKING:
    from skillruntime.contract.caller_texts import TextPlace
    from skillruntime.contract.contract import Accepted, Contract
    from skillruntime.runtime.conversation_state import ConversationState
    from skillruntime.runtime.files.own_directory import CallFiles
    from skillruntime.runtime.scripts.script_runner import ScriptRunner

__all__ = [
    "CallRequest",
    "Prepared",
    "Target",
    "WatchedWorkspace",
    "as_script_runner",
    "call_metadata",
    "require_seconds",
]

_NO_GRANTS = Grants()


class CallRequest(NamedTuple):
    """A request: a callable's name, the arguments as sent, and the host's options."""

    name: str
    sent: Any
    conversation_state: ConversationState | None
    options: CallOptions
    # The first clock measures the duration, the second one dates the record.
    started: float
    started_at: int
    function: Callable[..., Any] | None = None
    """The called function, if the host passed the function itself instead of a name."""

    @classmethod
    def of(
        cls,
        called: Any,
        arguments: Any,
        conversation_state: ConversationState | None,
        options: CallOptions,
    ) -> CallRequest:
        """Return the request for the argument of ``call``: a name, or the result of
        `skill`.

        Raises:
            TypeError: an option is unknown, or ``timeout`` is not a number of seconds.
                If a misspelled ``finish_reason`` were ignored, a truncated call would
                run.
            ValueError: ``timeout`` is negative, or not a number.
        """
        if not options.keys() <= _OPTIONS:
            raise _unknown_option(called, min(options.keys() - _OPTIONS))
        if "timeout" in options:
            require_seconds(options["timeout"])
        name, function = called, None
        if isinstance(called, FunctionSkill):
            name, function = called.name, called.function
        return cls(
            name,
            {} if arguments is None else arguments,
            conversation_state,
            options,
            time.perf_counter(),
            time.time_ns(),
            function,
        )


_OPTIONS = CallOptions.__annotations__.keys()


def require_seconds(timeout: Any) -> None:
    """Refuse an impossible *timeout* when the host sets it, not when the skill is
    called.
    """
    if timeout is None:
        return
    if isinstance(timeout, bool) or not isinstance(timeout, int | float):
        raise TypeError(f"timeout is a number of seconds, or None; got {timeout!r:.80}")
    if not timeout >= 0:  # NaN is not
        raise ValueError(f"timeout must be 0 seconds or more; got {timeout!r}")


def _unknown_option(called: Any, option: str) -> TypeError:
    name = called.name if isinstance(called, FunctionSkill) else called
    known = ", ".join(("session", *_OPTIONS))
    return TypeError(
        f"a call has no option {option!r}; the arguments are one mapping, "
        f"call({name!r}, {{{option!r}: ...}}), and the options are {known}"
    )


class Target(NamedTuple):
    """The target that a callable's name resolves to; found at the first call and
    kept.
    """

    name: str
    skill: Skill | None
    contract: Contract
    runner: Runner
    has_paths: bool
    needs_approval: bool
    escapes: Mapping[str, str]
    """The names and values with role marks of chat templates: the escaped text for the
    model, and the original.
    """

    @classmethod
    def of(
        cls, name: str, skill: Skill | None, contract: Contract, runner: Runner
    ) -> Target:
        """Return the target, with the two facts that every call needs."""
        from skillruntime.runtime.files.path_arguments import has_paths

        document = contract.input.document
        return cls(
            name,
            skill,
            contract,
            runner,
            has_paths=has_paths(document),
            needs_approval=_is_untrusted_script(runner),
            escapes=_escapes(document),
        )

    def unescaped(self, sent: Any) -> Any:
        """Return the arguments with escaped names and values replaced by the contract's
        own.
        """
        if not self.escapes:
            return sent
        if isinstance(sent, str):
            for shown, original in self.escapes.items():
                written = json.dumps(original)
                sent = sent.replace(json.dumps(shown), written)
                sent = sent.replace(json.dumps(shown, ensure_ascii=False), written)
            return sent
        return _replaced(sent, self.escapes)


def as_script_runner(runner: Runner) -> ScriptRunner | None:
    """Return *runner* if it runs a script, else ``None``."""
    # Imported by the first skill that has a script; before that no runner can be one.
    # While another thread imports the module, its class may be missing.
    scripts = sys.modules.get("skillruntime.runtime.scripts.script_runner")
    kind = getattr(scripts, "ScriptRunner", None)
    if kind is None or not isinstance(runner, kind):
        return None
    return cast("ScriptRunner", runner)


def _is_untrusted_script(runner: Runner) -> bool:
    script = as_script_runner(runner)
    return script is not None and not script.skill.trusted


def _escapes(document: Any) -> dict[str, str]:
    """Return the strings of a schema that are escaped for the model: the escaped form
    of each, with the original.
    """
    try:
        text = json.dumps(document, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return {}
    if escaped(text) == text:
        return {}
    originals = {}
    for original in _strings(document):
        shown = escaped(original)
        if shown != original:
            originals[shown] = original
    return originals


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _strings(item)


def _replaced(value: Any, originals: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return originals.get(value, value)
    if isinstance(value, list):
        return [_replaced(item, originals) for item in value]
    if isinstance(value, dict):
        return {
            originals.get(key, key): _replaced(item, originals)
            for key, item in value.items()
        }
    return value


# strerror(3) of ENOENT, which Node writes with a small letter
_NO_FILE = "o such file or directory"


class WatchedWorkspace:
    """One call's view of the workspace: files are compared from the moment the call
    first opens it.
    """

    __slots__ = (
        "_before",
        "_is_open",
        "_is_untrusted",
        "_lists_files",
        "missing",
        "workspace",
    )

    def __init__(
        self,
        workspace: Workspace,
        *,
        is_untrusted: bool = False,
        lists_files: bool = True,
    ) -> None:
        self.workspace: Workspace = workspace
        self._lists_files = lists_files
        self.missing: list[str] = []
        self._is_untrusted = is_untrusted
        self._is_open = False
        self._before: dict[str, Identity] | None = None

    def resolve(self, path: str, place: TextPlace) -> Path | None:
        """Return *path* as an absolute path in the workspace; None if it would be
        outside. *place* is its position in the arguments.
        """
        resolved = self.workspace.find(path)
        if resolved is not None and not is_there(resolved):
            self.missing.append(path)
        return resolved

    def open(self) -> Path:
        """Return the directory; new and changed files in it are listed from now on."""
        # Lazy, because most functions never touch a file: a snapshot costs a directory
        # scan for each call.
        if not self._is_open:
            self._is_open = True
            if self._lists_files:
                self._before = self.workspace.snapshot()
            if self._is_untrusted:
                self.workspace.note_untrusted()
        return self.workspace.directory

    def has_untrusted_files(self) -> bool:
        """Return whether a script of an untrusted skill may have written into the
        directory.
        """
        return self.workspace.has_untrusted_files

    def uncopied(self, words: Iterable[str]) -> Grants:
        """Return no grants, because the script sees the complete workspace."""
        return _NO_GRANTS

    def changes(self) -> list[dict[str, Any]]:
        """Return the files that are new or changed since `open`, as ``{path,
        media_type, bytes}``.
        """
        if self._before is None:
            return []
        return self.workspace.changes(self._before)

    @property
    def is_unwatched(self) -> bool:
        """Whether the directory was opened and holds too many files to compare."""
        return self._is_open and self._lists_files and self._before is None


class Prepared(NamedTuple):
    """A call that is ready to run: its target, the accepted arguments, and its time
    limit in seconds.
    """

    request: CallRequest
    target: Target
    accepted: Accepted
    arguments: dict[str, Any]
    timeout: float | None
    workspace: WatchedWorkspace | CallFiles
    # The runner fills it during the run with the level of its sandbox, and whether a
    # cancelled script was seen to stop.
    execution: dict[str, Any]
    grants: Grants = _NO_GRANTS
    code: SkillCopy | None = None

    def note_start(self) -> None:
        """Tell the host that the runner starts now."""
        on_start = self.request.options.get("on_start")
        if on_start is not None:
            on_start()

    def context(self, deadline: float | None) -> CallContext:
        """Return the context that the runner gets in addition to the arguments."""
        options = self.request.options
        call_id = options.get("call_id")
        # Not created if the host passed one: a new id takes a tenth of the call.
        given = {} if call_id is None else {"call_id": call_id}
        conversation = options.get("conversation")
        state = self.request.conversation_state
        if conversation is None and state is not None:
            conversation = state.key
        return CallContext(
            self.request.name,
            self.workspace.open,
            options.get("caller"),
            options.get("config"),
            deadline,
            execution=self.execution,
            grants=self.grants,
            code=self.code,
            has_untrusted_files=self.workspace.has_untrusted_files,
            uncopied=self.workspace.uncopied,
            conversation=conversation,
            message=options.get("message"),
            **given,
        )

    def explained(self, errors: list[SkillError]) -> list[SkillError]:
        """Return *errors* with details: for a missing file the directory that was
        searched, for a failure the argument that it names.
        """
        return [self._explained(error) for error in errors]

    def _explained(self, error: SkillError) -> SkillError:
        report = self._report(error)
        for path in [*self.workspace.missing, *self._texts_not_there(report)]:
            if PurePath(path).name in report:
                return self._of_missing_file(error, path)
        action = error.suggested_action or ""
        if not action.startswith(TELL):
            return error
        named = self._arguments_in(error.message)
        if not named:
            return error
        choices = " or ".join(map(repr, named[:3]))
        return replace(error, suggested_action=f"Change {choices}, or t{action[1:]}")

    def _report(self, error: SkillError) -> str:
        """Return the text of *error* and of the script, to search it for the name of a
        missing file: many scripts print their errors on stdout.
        """
        details = error.details or {}
        report = [error.message, *map(str, details.values())]
        if error.code is not ErrorCode.TOOL_EXECUTION_FAILED:
            return "\n".join(report)
        report.append(self.execution.get("stderr", ""))
        printed = "\n".join(_strings(self.execution.get("output")))
        if len(printed) <= _LONGEST_COMPLAINT:
            report.append(printed)
        return "\n".join(report)

    def _of_missing_file(self, error: SkillError, path: str) -> SkillError:
        self.execution["missing_file"] = path
        workspace = self.workspace.workspace
        action = (
            f"{path[:80]!r} is not in {workspace.described()}. {workspace.next_step}"
        )
        return replace(
            error, suggested_action=action, recoverable=workspace.given is not None
        )

    def _arguments_in(self, message: str) -> list[str]:
        """Return the arguments that *message* names, or whose values it quotes."""
        words = re.findall(r"\w+", message)
        quoted = re.findall(r"'([^']*)'", message)
        named = []
        for name, value in self.arguments.items():
            if name in words or value in quoted:
                named.append(name)
        return named

    def _texts_not_there(self, report: str) -> Iterator[str]:
        """Yield the argument texts that name a missing file according to the *report*
        of a script: many scripts do not declare which texts are paths.
        """
        if "sandbox" not in self.execution:
            return  # a function does not work in the workspace
        lines = [line for line in report.splitlines() if _NO_FILE in line]
        if not lines:
            return
        for text in _strings([*self.arguments.values()]):
            name = PurePath(text).name
            if not name:
                continue
            whole_name = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])")
            is_named = any(map(whole_name.search, lines))
            if is_named and not is_there(self.workspace.workspace.directory / text):
                yield text


def call_metadata(
    request: CallRequest, target: Target | None, prepared: Prepared | None
) -> dict[str, Any]:
    """Return the envelope's ``metadata``; without *target* and *prepared* only the
    facts about the request itself.
    """
    metadata: dict[str, Any] = {"skill": request.name}
    # A refused call has no `prepared`, but the model should still see which version
    # refused it.
    if target is not None and target.contract.version is not None:
        metadata["version"] = target.contract.version
    if prepared is not None:
        _add_prepared(metadata, prepared)
    metadata["duration_ms"] = round((time.perf_counter() - request.started) * 1000)
    if prepared is not None:
        _add_execution(metadata, prepared)
    return metadata


def _add_prepared(metadata: dict[str, Any], prepared: Prepared) -> None:
    accepted = prepared.accepted
    if accepted.repairs:
        metadata["repairs"] = [repair.to_dict() for repair in accepted.repairs]
    if accepted.migrated_from is not None:
        metadata["migrated_from"] = accepted.migrated_from
    warnings = list(accepted.warnings)
    if prepared.workspace.is_unwatched:
        warnings.append(
            f"The workspace holds more than {FILE_LIMIT:,} files; new files are not "
            "listed"
        )
    if warnings:
        metadata["warnings"] = warnings


def _add_execution(metadata: dict[str, Any], prepared: Prepared) -> None:
    keys = ("sandbox", "grants", "exit_code", "exit_meaning", "stderr")
    for key in (*keys, "still_running"):
        if key in prepared.execution:
            metadata[key] = prepared.execution[key]
    if "warnings" in prepared.execution:
        metadata.setdefault("warnings", []).extend(prepared.execution["warnings"])
    files = prepared.workspace.changes()
    if not files:
        return
    # A script may use a granted secret in the name of a file.
    secrets = prepared.execution.pop("secrets", ())
    listed = []
    for file in _first(files):
        listed.append({**file, "path": _masked(file["path"], secrets)})
    metadata["files"] = listed
    # Only from local observations: a remote skill may put anything into its metadata.
    if prepared.request.conversation_state is not None:
        paths = [file["path"] for file in listed]
        prepared.request.conversation_state.note_files(paths)
    if len(listed) < len(files):
        metadata.setdefault("warnings", []).append(
            f"The call changed {len(files):,} files in the workspace; the first "
            f"{len(listed)} are listed"
        )


def _masked(path: str, secrets: Iterable[str]) -> str:
    for secret in secrets:
        path = path.replace(secret, "***")
    return path


def _first(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first few *files*: a script chooses their number and names, and a
    model reads the list.
    """
    left = _MAX_LISTED_CHARACTERS
    for index, file in enumerate(files[:_MAX_LISTED]):
        left -= len(file["path"])
        if left < 0:
            return files[:index]
    return files[:_MAX_LISTED]


_LONGEST_COMPLAINT = 600  # characters; a longer text is an output
_MAX_LISTED = 200
_MAX_LISTED_CHARACTERS = 20_000
