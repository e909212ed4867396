"""The path of one call: `skillruntime/runtime/runtime.py`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import pytest

import skillruntime
from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract, SkillResponse
from skillruntime.errors import (
    AccessDeniedError,
    ErrorCode,
    InvalidSkillError,
    SkillError,
    SkillRuntimeError,
    ToolExecutionError,
)
from skillruntime.runtime import Approval, CallContext, SkillRuntime
from tests import needs
from tests.skill_files import made

WriteSkill = Callable[..., SkillCatalog]
ANYTHING = Contract.from_dict({"version": "1.0.0"}, name="any")


def implemented(function: Callable[..., Any], **contract: Any) -> SkillRuntime:
    """A runtime in which ``it`` is *function*."""
    runtime = SkillRuntime()
    runtime.implements(
        "it", contract=Contract.from_dict({"version": "1.0.0", **contract}, name="it")
    )(function)
    return runtime


def call_both_ways(
    runtime: SkillRuntime, arguments: Any = None, **options: Any
) -> Iterator[SkillResponse]:
    """Call ``it`` from blocking code, then from async code."""
    given = {} if arguments is None else arguments
    yield runtime.call_sync("it", given, **options)

    async def main() -> SkillResponse:
        return await runtime.call("it", given, **options)

    yield anyio.run(main)


def error_of(response: SkillResponse) -> SkillError:
    """The one error of a failed call."""
    assert response.status == "failed"
    assert response.errors is not None
    (error,) = response.errors
    return error


def test_a_function_runs_under_its_skills_contract(write_skill: WriteSkill) -> None:
    """The skill on disk says what is accepted; the host's function runs in place of a
    script.
    """
    runtime = SkillRuntime(write_skill("raise SystemExit('not this one')"))

    @runtime.implements("sample")
    def shout(arguments: dict[str, Any]) -> str:
        return str(arguments["text"]).upper()

    response = runtime.call_sync("sample", {"TEXT": "hi"})

    assert (response.status, response.data) == ("success", "HI")
    assert response.metadata is not None
    assert response.metadata["skill"] == "sample"
    assert response.metadata["version"] == "1.2.0"
    assert response.metadata["repairs"][0]["before"] == "TEXT"
    assert isinstance(response.metadata["duration_ms"], int)


def test_old_arguments_are_migrated_and_say_so() -> None:
    """An older shape that accepts the call untouched beats a repair of the current
    one.
    """
    runtime = implemented(
        lambda arguments: arguments["topics"],
        version="2.0.0",
        input={
            "required": ["topics"],
            "properties": {"topics": {"type": "array", "items": {"type": "string"}}},
        },
        migrations=[
            {
                "from": ">=1.0.0,<2.0.0",
                "to": "2.0.0",
                "accepts": {
                    "required": ["topics"],
                    "properties": {"topics": {"type": "string"}},
                },
                "steps": [{"wrap": "/topics"}],
            }
        ],
    )

    for response in call_both_ways(runtime, {"topics": "AI"}):
        assert response.data == ["AI"]
        assert response.metadata is not None
        assert response.metadata["migrated_from"] == ">=1.0.0,<2.0.0"
    for response in call_both_ways(runtime, {"topics": "AI"}, version="9.0.0"):
        assert error_of(response).code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    "arguments",
    [{"a": "x"}, "", "{", [], None, 5, {"a": {"b": 1}}, b"\xff", float("nan")],
)
def test_nothing_is_run_on_refusal(arguments: Any) -> None:
    """Whatever is wrong with the arguments, the function is not called, and there is an
    envelope.
    """
    ran: list[Any] = []
    schema = {"required": ["a"], "properties": {"a": {"type": "integer"}}}
    runtime = implemented(ran.append, input=schema)

    responses = [
        runtime.call_sync("it", arguments),
        anyio.run(runtime.call, "it", arguments),
    ]

    assert ran == []
    for response in responses:
        assert response.status == "failed"
        assert response.errors
        assert all(error.suggested_action for error in response.errors)
        json.loads(response.to_json())


@pytest.mark.parametrize(
    "name", ["nothing", "", None, 5, "sample/none", "../sample", "sampel"]
)
def test_an_unknown_name_is_not_found(write_skill: WriteSkill, name: Any) -> None:
    """Any name a model makes up; the answer suggests a close one."""
    response = SkillRuntime(write_skill("")).call_sync(name, {})

    assert error_of(response).code is ErrorCode.SKILL_NOT_FOUND
    assert error_of(response).suggested_action
    if name == "sampel":
        assert "sample" in (error_of(response).suggested_action or "")


def test_a_contract_that_nothing_runs_is_not_available(write_skill: WriteSkill) -> None:
    """No script and no function: the answer says the remedy."""
    error = error_of(SkillRuntime(write_skill(None, run={})).call_sync("sample", {}))

    assert error.code is ErrorCode.TOOL_NOT_AVAILABLE
    assert "@runtime.implements('sample')" in (error.suggested_action or "")


def test_a_broken_contract_is_the_skills_fault(write_skill: WriteSkill) -> None:
    """INVALID_SKILL, and never a traceback."""
    error = error_of(
        SkillRuntime(write_skill("", input={"type": "no-such-type"})).call_sync(
            "sample", {}
        )
    )

    assert error.code is ErrorCode.INVALID_SKILL


@pytest.mark.processes
@pytest.mark.parametrize(
    ("required", "code"),
    [
        ("<0.0.1", ErrorCode.INCOMPATIBLE_RUNTIME),
        ("words", ErrorCode.INVALID_SKILL),
        (f">={skillruntime.__version__}", None),
    ],
)
def test_a_skill_for_another_runtime_is_refused(
    write_skill: WriteSkill, required: str, code: ErrorCode | None
) -> None:
    """`requires.runtime` (31.5): the error names both versions."""
    response = SkillRuntime(
        write_skill("print(1)", requires={"runtime": required})
    ).call_sync("sample", {})

    if code is None:
        assert response.status == "success"
    else:
        assert error_of(response).code is code


# Trust and approval


def test_an_untrusted_script_is_not_run(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """Without the host's hook: ACCESS_DENIED with the remedy, and nothing has run."""
    catalog = write_skill("open('ran', 'w')", trusted=False)

    error = error_of(
        SkillRuntime(catalog, workspace=made(tmp_path / "w")).call_sync("sample", {})
    )

    assert (error.code, error.recoverable) == (ErrorCode.ACCESS_DENIED, False)
    assert "approve=" in (error.suggested_action or "")
    assert not (tmp_path / "w" / "ran").exists()


@pytest.mark.processes
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("answer", "status"),
    [(True, "success"), (False, "failed"), ("yes", "failed"), (None, "failed")],
)
def test_the_host_approves_or_does_not(
    write_skill: WriteSkill,
    answer: Any,
    status: str,
    is_async: bool,
    request: pytest.FixtureRequest,
) -> None:
    """It sees what would run with what; only True is a yes."""
    if answer is True:
        request.getfixturevalue("some_sandbox")
    asked: list[Approval] = []

    def approve(request: Approval) -> Any:
        asked.append(request)
        return answer

    async def approve_later(request: Approval) -> Any:
        await anyio.lowlevel.checkpoint()
        return approve(request)

    runtime = SkillRuntime(
        write_skill("print(1)", trusted=False),
        approve=approve_later if is_async else approve,
    )

    for response in (
        runtime.call_sync("sample", {"text": 1}),
        anyio.run(runtime.call, "sample", {"text": 1}),
    ):
        assert response.status == status
    assert [(request.name, request.script, request.arguments) for request in asked] == [
        ("sample", "scripts/run.py", {"text": "1"})
    ] * 2


def test_the_arguments_are_refused_before_anyone_is_asked(
    write_skill: WriteSkill,
) -> None:
    """A person is not bothered with a call that cannot run."""
    asked: list[Approval] = []
    runtime = SkillRuntime(
        write_skill("", trusted=False),
        approve=lambda request: asked.append(request) or True,
    )

    assert runtime.call_sync("sample", {"wrong": 1}).status == "failed"
    assert asked == []


def test_the_hosts_own_function_needs_no_approval(write_skill: WriteSkill) -> None:
    """The code is the host's, whoever wrote the skill's text."""
    runtime = SkillRuntime(write_skill("", trusted=False))
    runtime.implements("sample")(lambda arguments: 1)

    assert runtime.call_sync("sample", {}).data == 1


# Functions


def test_a_function_receives_its_context_if_it_asks(tmp_path: Path) -> None:
    """By its name or its annotation; never through the arguments."""
    seen: list[CallContext] = []

    def by_name(arguments: dict[str, Any], context: Any) -> None:
        seen.append(context)

    def by_annotation(arguments: dict[str, Any], call: CallContext) -> None:
        seen.append(call)

    async def in_async(arguments: dict[str, Any], context: CallContext) -> None:
        seen.append(context)

    for function in (by_name, by_annotation, in_async):
        for response in call_both_ways(
            implemented(function), caller="ada", config={"user": 1}, timeout=300
        ):
            assert response.status == "success"

    assert len(seen) == 6
    assert {context.name for context in seen} == {"it"}
    assert {context.caller for context in seen} == {"ada"}
    assert all(context.config == {"user": 1} for context in seen)
    assert len({context.call_id for context in seen}) == 6


def test_a_context_knows_its_deadline_and_its_workspace(tmp_path: Path) -> None:
    """Files that the function writes are listed, like a script's."""

    async def work(arguments: dict[str, Any], context: CallContext) -> float | None:
        (context.workspace / "notes.txt").write_text("done")
        return context.remaining

    runtime = SkillRuntime(workspace=made(tmp_path / "w"))
    runtime.implements("it", contract=ANYTHING)(work)

    response = anyio.run(lambda: runtime.call("it", {}, timeout=50))

    assert 0 < response.data <= 50
    assert response.metadata is not None
    assert response.metadata["files"] == [
        {"path": "notes.txt", "media_type": "text/plain", "bytes": 4}
    ]


def test_a_runtime_is_shown_by_what_it_serves() -> None:
    runtime = implemented(lambda arguments: 1)

    assert repr(SkillRuntime()) == "<SkillRuntime of 0 skills>"
    assert repr(runtime) == "<SkillRuntime of 0 skills and it>"


def test_a_plain_function_runs_in_the_callers_thread_or_in_a_worker() -> None:
    """Blocking: this very thread, with no event loop between. Async: a worker
    thread.
    """
    runtime = implemented(lambda arguments: threading.get_ident())

    blocking, from_async = call_both_ways(runtime)

    assert blocking.data == threading.get_ident()
    assert from_async.data != threading.get_ident()


def test_an_async_function_can_be_called_from_a_running_loop_too() -> None:
    """A blocking call inside a coroutine gets its answer."""

    async def work(arguments: dict[str, Any]) -> str:
        await anyio.lowlevel.checkpoint()
        return "done"

    async def main() -> SkillResponse:
        return implemented(work).call_sync("it", {})

    assert anyio.run(main).data == "done"


@pytest.mark.parametrize(
    ("raised", "code", "recoverable"),
    [
        (InvalidSkillError("x"), ErrorCode.INVALID_SKILL, False),
        (
            ToolExecutionError("x", recoverable=True),
            ErrorCode.TOOL_EXECUTION_FAILED,
            True,
        ),
        (AccessDeniedError("x"), ErrorCode.ACCESS_DENIED, False),
        (TimeoutError("x"), ErrorCode.TOOL_TIMEOUT, True),
        (
            ExceptionGroup("g", [ExceptionGroup("h", [TimeoutError()])]),
            ErrorCode.TOOL_TIMEOUT,
            True,
        ),
        (SystemExit(3), ErrorCode.TOOL_EXECUTION_FAILED, False),
        (ValueError("secret"), ErrorCode.INTERNAL_ERROR, False),
        (
            ExceptionGroup("secret", [ValueError(), KeyError()]),
            ErrorCode.INTERNAL_ERROR,
            False,
        ),
        (RecursionError("secret"), ErrorCode.INTERNAL_ERROR, False),
        (SkillRuntimeError("x"), ErrorCode.INTERNAL_ERROR, False),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_function_raises_becomes_the_right_code(
    raised: BaseException, code: ErrorCode, recoverable: bool, is_async: bool
) -> None:
    """Our family keeps its code; a bug says its type alone; `sys.exit` does not end the
    host.
    """

    def fail(arguments: dict[str, Any]) -> None:
        raise raised

    async def fail_later(arguments: dict[str, Any]) -> None:
        raise raised

    for response in call_both_ways(implemented(fail_later if is_async else fail)):
        error = error_of(response)
        assert (error.code, error.recoverable) == (code, recoverable)
        assert error.suggested_action
        assert "secret" not in response.to_json()


def test_a_bug_goes_to_the_log_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What the model must not read, the host must."""

    def fail(arguments: dict[str, Any]) -> None:
        raise ValueError("the inside story")

    implemented(fail).call_sync("it", {})

    assert "the inside story" in caplog.text
    assert "Traceback" in caplog.text


def test_a_function_may_answer_with_an_envelope() -> None:
    """Its status, errors and metadata are kept; its data is checked."""
    error = SkillError(ErrorCode.FETCH_FAILED, "one is down", True)
    answer = SkillResponse(
        "partial_success", data={"n": 1}, errors=[error], metadata={"source": "cache"}
    )

    response = implemented(lambda arguments: answer).call_sync("it", {})

    assert (response.status, response.data, response.errors) == (
        "partial_success",
        {"n": 1},
        [error],
    )
    assert response.metadata is not None
    assert response.metadata["source"] == "cache"
    assert response.metadata["skill"] == "it"


def test_an_output_is_checked_as_it_was_returned() -> None:
    """A function breaks its promise like any other skill."""
    runtime = implemented(
        lambda arguments: {"n": "1"}, output={"properties": {"n": {"type": "integer"}}}
    )

    for response in call_both_ways(runtime):
        assert error_of(response).code is ErrorCode.INVALID_OUTPUT
        assert response.data is None


# Deadlines and cancellation


def test_an_async_function_is_stopped_at_its_deadline() -> None:
    """It has stopped where it stood, so the call may be sent again."""
    ended: list[str] = []

    async def wait(arguments: dict[str, Any]) -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stopped")

    for response in call_both_ways(implemented(wait), timeout=0.05):
        error = error_of(response)
        assert (error.code, error.recoverable) == (ErrorCode.TOOL_TIMEOUT, True)
    assert ended == ["stopped", "stopped"]


@pytest.mark.parametrize(
    ("annotations", "recoverable"),
    [({}, False), ({"idempotent": True}, True), ({"read_only": True}, True)],
)
def test_a_thread_past_its_deadline_may_still_be_running(
    annotations: dict[str, Any], recoverable: bool
) -> None:
    """Python cannot stop it: sending the call again is safe only where the skill says
    so.
    """
    release = threading.Event()

    def wait(arguments: dict[str, Any]) -> None:
        release.wait(300)

    runtime = implemented(wait, annotations=annotations)

    async def main() -> SkillResponse:
        try:
            return await runtime.call("it", {}, timeout=0.05)
        finally:
            release.set()

    error = error_of(anyio.run(main))

    assert (error.code, error.recoverable) == (ErrorCode.TOOL_TIMEOUT, recoverable)
    assert ("still be running" in (error.suggested_action or "")) is not recoverable


def test_a_timeout_inside_a_function_is_not_our_deadline() -> None:
    """`TimeoutError` of the function's own work, long before the deadline."""

    async def work(arguments: dict[str, Any]) -> None:
        with anyio.fail_after(0.01):
            await anyio.sleep_forever()

    response = anyio.run(lambda: implemented(work).call("it", {}, timeout=50))

    assert error_of(response).message == "Something the skill waited for timed out"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_cancellation_is_never_swallowed(backend: str) -> None:
    """A cancelled call gives no answer; it is cancelled."""
    if backend == "trio":
        needs.package("trio")
    answers: list[SkillResponse] = []

    async def main() -> None:
        started = anyio.Event()

        async def wait(arguments: dict[str, Any]) -> None:
            started.set()
            await anyio.sleep_forever()

        async def call() -> None:
            answers.append(await implemented(wait).call("it", {}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await started.wait()
            tasks.cancel_scope.cancel()

    anyio.run(main, backend=backend)

    assert answers == []


def test_what_the_host_lets_through_is_raised() -> None:
    """An agent's own control flow is not a failure of the skill."""

    class InterruptError(Exception):
        pass

    def interrupt(arguments: dict[str, Any]) -> None:
        raise InterruptError

    for is_async in (False, True):
        with pytest.raises(InterruptError):
            runtime = implemented(interrupt)
            options: dict[str, Any] = {
                "let_through": lambda error: isinstance(error, InterruptError)
            }
            if is_async:
                anyio.run(
                    lambda runtime=runtime, options=options: runtime.call(
                        "it", {}, **options
                    )
                )
            else:
                runtime.call_sync("it", {}, **options)


def test_a_runner_may_come_from_another_package(write_skill: WriteSkill) -> None:
    """A factory says what it can run; the first that can, runs it."""

    async def remote(arguments: dict[str, Any], context: CallContext) -> str:
        return "from far away"

    catalog = write_skill("raise SystemExit")
    runtime = SkillRuntime(
        catalog, runners=[lambda skill, contract: None, lambda skill, contract: remote]
    )

    assert runtime.call_sync("sample", {}).data == "from far away"


@pytest.mark.processes
def test_a_new_catalog_is_seen(write_skill: WriteSkill) -> None:
    """Contracts are kept until the host gives a new catalog."""
    runtime = SkillRuntime(write_skill("print(1)"))
    assert runtime.call_sync("sample", {}).metadata["version"] == "1.2.0"

    runtime.catalog = write_skill("print(2)", version="1.3.0")

    assert runtime.call_sync("sample", {}).metadata["version"] == "1.3.0"


def test_the_policy_is_the_contracts_unless_the_host_says() -> None:
    """A strict host repairs nothing."""
    runtime = SkillRuntime(policy="strict")
    schema = {"properties": {"n": {"type": "integer"}}}
    runtime.implements("it", contract=Contract.from_dict({"input": schema}))(
        lambda arguments: arguments
    )

    assert runtime.call_sync("it", {"n": "5"}).status == "failed"


@pytest.mark.parametrize(
    "function",
    [
        lambda: 1,
        lambda topics, count: 1,
        lambda *, topics: 1,
        lambda arguments, context, more: 1,
    ],
)
def test_a_function_that_cannot_be_called_is_refused_at_once(
    function: Callable[..., Any],
) -> None:
    """A host learns of it when it registers the function, not at the first call."""
    text = {"required": ["text"], "properties": {"text": {"type": "string"}}}

    with pytest.raises(InvalidSkillError, match="does not fit the contract of 'it'"):
        implemented(function, input=text)


def test_a_directory_is_not_a_catalog() -> None:
    """The likeliest mistake of a host."""
    with pytest.raises(TypeError, match="discover"):
        SkillRuntime("skills")  # type: ignore[arg-type]  # the mistake


def test_a_plain_function_may_return_what_must_be_awaited() -> None:
    """A lambda around a coroutine function, say."""

    async def work() -> str:
        return "done"

    for response in call_both_ways(implemented(lambda arguments: work())):
        assert response.data == "done"
