"""The path of one call: `CallPath.call`. It is fixed, and fits on one screen.

Raw text or mapping -> arguments that fit the contract -> permission -> run inside a
deadline -> the output checked -> the envelope. The parts that need not wait are two
plain functions: `prepare` before the run, and `finish` after it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillOutputError
from skillruntime.runtime.approval import (
    Approve,
    not_trusted_error,
    run_approved,
    run_plainly,
)
from skillruntime.runtime.blocking import run_to_end
from skillruntime.runtime.call import (
    CallRequest,
    Prepared,
    Target,
    WatchedWorkspace,
    as_script_runner,
    call_metadata,
)
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_record import (
    CallRecord,
    Observer,
    around,
    is_logging,
    notify,
)
from skillruntime.runtime.callables import Callables
from skillruntime.runtime.error_responses import (
    data_of,
    read_reported,
    repeated,
    to_errors,
    unwrapped,
)
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.runners import FunctionRunner, ReportedFailureError
from skillruntime.runtime.sandbox.protocol import Limits

if TYPE_CHECKING:
    from skillruntime.contract.contract import Accepted
    from skillruntime.runtime.conversation_state import ConversationState
    from skillruntime.runtime.files.own_directory import CallFiles

__all__ = ["CallPath"]


@dataclass(slots=True, kw_only=True, eq=False)
class CallPath:
    """Calls the targets that *callables* finds, under the host's settings, which
    `SkillRuntime` describes.

    `prepare`, `finish` and `_failed` decide; only `run_approved` waits for a skill.
    """

    callables: Callables
    observers: tuple[Observer, ...]
    policy: str | None
    approve: Approve | None
    workspace: Workspace
    """The workspace of a call outside any conversation."""
    timeout: float | None
    shares_workspace: bool
    lists_files: bool
    script_limits: Limits
    image_bytes: int

    async def call(
        self,
        called: Any,
        arguments: Any,
        state: ConversationState | None,
        options: CallOptions,
    ) -> SkillResponse[Any]:
        """Call *called*, a callable's name or the result of `skill`, and return the
        envelope; *state* belongs to the conversation of the call.
        """
        request = CallRequest.of(called, arguments, state, options)
        prepared = None
        # Outside `try`: a span must cover the failure too.
        with around(self.observers, request.name):
            try:
                if state is not None:
                    await state.settle()
                prepared = self.prepare(request)
                output = await run_approved(prepared, self.approve)
                response = self.finish(prepared, output)
            except Exception as error:
                response = self._failed(request, prepared, error)
            if state is not None:
                response = await state.record_answer_aside(
                    request.name, request.sent, response
                )
            return self._noted(request, prepared, response)

    def call_sync(
        self,
        called: Any,
        arguments: Any,
        state: ConversationState | None,
        options: CallOptions,
    ) -> SkillResponse[Any]:
        """Do as `call` does, without an event loop."""
        request = CallRequest.of(called, arguments, state, options)
        prepared = None
        with around(self.observers, request.name):
            try:
                prepared = self.prepare(request)
                output = self._run_blocking(prepared)
                response = self.finish(prepared, output)
            except Exception as error:
                response = self._failed(request, prepared, error)
            if state is not None:
                response = state.record_answer(request.name, request.sent, response)
            return self._noted(request, prepared, response)

    def _run_blocking(self, prepared: Prepared) -> Any:
        runner = prepared.target.runner
        script = as_script_runner(runner)
        if script is not None and not prepared.target.needs_approval:
            if not script.needs_event_loop(prepared.context(None)):
                return run_plainly(prepared, script)
        if not isinstance(runner, FunctionRunner) or runner.is_async:
            return run_to_end(run_approved, prepared, self.approve)
        # In this thread: starting an event loop for a plain function would cost more
        # than the call.
        context = prepared.context(None) if runner.takes_context else None
        prepared.note_start()
        output = runner.run_here(prepared.arguments, context)
        if type(output) is not dict and inspect.isawaitable(output):
            return run_to_end(_awaited, output)
        return output

    def prepare(self, request: CallRequest) -> Prepared:
        """Return the call, decided as far as possible without waiting: its contract,
        its arguments, its runner.

        Raises:
            SkillRuntimeError: the call is refused, and nothing has been run.
        """
        options, state = request.options, request.conversation_state
        workspace = self.workspace
        if state is not None:
            # Checked before anything runs: a result that cannot be returned would be
            # lost after its side effects.
            state.require_result_budget()
            workspace = state.workspace
        target = self.callables.target(request.name, request.function)
        accepted = target.contract.accept(
            target.unescaped(request.sent),
            version=options.get("version"),
            policy=self.policy,
            finish_reason=options.get("finish_reason"),
        )
        watched, arguments = self._files_of(target, workspace, accepted)
        if target.has_paths:
            from skillruntime.runtime.files.path_arguments import with_resolved_paths

            resolved = with_resolved_paths(arguments, target.contract.input, watched)
            arguments = resolved.arguments
            if resolved.repairs:
                repairs = (*accepted.repairs, *resolved.repairs)
                accepted = dataclasses.replace(accepted, repairs=repairs)
        if target.needs_approval and self.approve is None:
            script = str(target.contract.run["script"])
            raise not_trusted_error(target.name, script)
        timeout = options.get("timeout")
        if timeout is None:
            timeout = target.contract.run.get("timeout_seconds", self.timeout)
        granted = options.get("grants")
        if granted is None:
            return Prepared(request, target, accepted, arguments, timeout, watched, {})
        return Prepared(
            request, target, accepted, arguments, timeout, watched, {}, grants=granted
        )

    def _files_of(
        self, target: Target, workspace: Workspace, accepted: Accepted
    ) -> tuple[WatchedWorkspace | CallFiles, dict[str, Any]]:
        """Return the working directory for a call of *target*, and the arguments with
        the paths under which its script finds the named files.
        """
        skill = target.skill
        if not target.needs_approval or self.shares_workspace or skill is None:
            watched = WatchedWorkspace(
                workspace,
                is_untrusted=target.needs_approval,
                lists_files=self.lists_files,
            )
            return watched, accepted.arguments
        from skillruntime.contract.caller_texts import caller_texts
        from skillruntime.runtime.files.own_directory import CallFiles, own_directory

        own = own_directory(workspace, skill.name, self.script_limits.workspace)
        texts = caller_texts(target.contract, accepted)
        files = CallFiles(own, texts, self.script_limits)
        # The author of a contract says which parameters are paths.
        if not target.contract.is_derived:
            return files, accepted.arguments
        return files, files.with_named_files(accepted.arguments)

    def finish(self, prepared: Prepared, output: Any) -> SkillResponse:
        """Check *output* and put it into the envelope.

        Raises:
            SkillOutputError: *output* does not fit the contract.
        """
        returned = output.data if isinstance(output, SkillResponse) else output
        plain = returned
        runner = prepared.target.runner
        if isinstance(runner, FunctionRunner):
            plain = runner.to_plain(returned)
        try:
            prepared.target.contract.check(plain)
        except SkillOutputError:
            # Show a script's output even if it is not a valid result.
            if "sandbox" in prepared.execution:
                prepared.execution["output"] = plain
            raise
        metadata = call_metadata(prepared.request, prepared.target, prepared)
        if isinstance(output, SkillResponse):
            metadata |= output.metadata or {}
            return dataclasses.replace(output, data=returned, metadata=metadata)
        status, errors = read_reported(plain)
        # A caller in Python gets the function's own model back.
        data = data_of(plain, status) if status == "failed" else returned
        return SkillResponse(
            status, data=data, errors=prepared.explained(errors), metadata=metadata
        )

    def _failed(
        self, request: CallRequest, prepared: Prepared | None, error: Exception
    ) -> SkillResponse:
        """Return the envelope of a refused or failed call: every exception becomes an
        answer here.
        """
        error = unwrapped(error)
        let_through = request.options.get("let_through")
        # LangGraph's interrupt is an exception; enveloped, it would never reach the
        # graph.
        if let_through is not None and let_through(error):
            raise error
        if prepared is None:
            target = self.callables.known_target(request.name)
        else:
            target = prepared.target
        metadata = call_metadata(request, target, prepared)
        if isinstance(error, ReportedFailureError):
            status, errors = read_reported({"status": "failed", **error.document})
            if prepared is not None:
                errors = prepared.explained(errors)
            data = data_of(error.document, status)
            return SkillResponse(status, data=data, errors=errors, metadata=metadata)
        errors = to_errors(error, request.name)
        if prepared is not None:
            errors = prepared.explained(errors)
            if "missing_file" in prepared.execution:
                _drop_traceback(metadata)
        elif request.conversation_state is not None:
            times = request.conversation_state.count_refusal(
                request.name, request.sent, request.options.get("version")
            )
            errors[0] = repeated(errors[0], times)
        data = None if prepared is None else prepared.execution.get("output")
        return SkillResponse("failed", data=data, errors=errors, metadata=metadata)

    def _noted(
        self, request: CallRequest, prepared: Prepared | None, response: SkillResponse
    ) -> SkillResponse:
        """Return the answer after passing its record to the observers and the log."""
        if self.observers or is_logging():
            notify(self.observers, CallRecord.of(request, prepared, response))
        return response


def _drop_traceback(metadata: dict[str, Any]) -> None:
    """Leave out a Python traceback on stderr if the error says what to change: its last
    line is in the message.
    """
    if _TRACEBACK in metadata.get("stderr", ""):
        del metadata["stderr"]


_TRACEBACK = "Traceback (most recent call last):"


async def _awaited(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
