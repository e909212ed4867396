"""Remote skills as runners: to the runtime, and so to a model, a skill like any
other.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import discover
from skillruntime.errors import InvalidSkillError
from skillruntime.remote import (
    ApiKey,
    CustomCredentials,
    RemoteClient,
    RemoteError,
    attach_remote_skills,
)
from skillruntime.remote.client import RemoteRunner, remote_runners
from skillruntime.runtime import SkillRuntime
from tests.remote.parts import (
    NoCredentials,
    WireRequest,
    WireResponse,
    read_descriptor_file,
)
from tests.server.serving import KEY, Served, serve_in_memory

pytestmark = pytest.mark.anyio


def skill_on_disk(
    directory: Path,
    served: Served,
    name: str,
    *,
    contract: bool = False,
    **changes: Any,
) -> None:
    """Write a skill that has nothing but its SKILL.md, the served descriptor, and, if
    asked for, a contract.
    """
    folder = directory / name
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        f"---\nname: {name}\ndescription: The skill {name}\n---\nCall it.\n"
    )
    descriptor = served.service.skills[name].descriptor
    (folder / "descriptor.json").write_text(
        json.dumps({**descriptor.to_dict(), **changes})
    )
    if contract:
        (folder / "contract.json").write_text(
            json.dumps(descriptor.to_contract(name).to_dict())
        )


async def test_a_skill_with_a_descriptor_is_called_like_any_other(
    tmp_path: Path,
) -> None:
    """`SkillRuntime(runners=[...])`: the arguments are checked and repaired before
    sending, the response enveloped.
    """
    async with serve_in_memory() as served:
        skill_on_disk(tmp_path, served, "echo", contract=True)
        runners = [
            remote_runners(
                credentials=lambda descriptor: NoCredentials, transport=served.transport
            )
        ]
        runtime = SkillRuntime(discover(tmp_path), runners=runners)
        response = await runtime.call("echo", {"Text": "Hello"})
        refused = await runtime.call("echo", {"text": ""})

    assert response.status == "success" and response.data == {"said": "Hello"}
    assert (
        response.metadata is not None
        and response.metadata["repairs"][0]["after"] == "text"
    )
    assert refused.errors is not None and refused.errors[0].details is not None
    assert served.skills.ran == ["Hello"], "what does not fit is not sent"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a":' * 100_000, "recursion"),
        ('{"id": "a", "id": "b"}', "'id' twice"),
        ('{"id": NaN}', "NaN"),
        ("\xff", "utf-8"),
    ],
)
async def test_a_descriptor_file_is_read_as_strictly_as_a_message(
    tmp_path: Path, text: str, expected: str
) -> None:
    """A third party wrote it: what two readers take in two ways, or what would end the
    process, is refused.
    """
    async with serve_in_memory() as served:
        skill_on_disk(tmp_path, served, "echo")
    (tmp_path / "echo" / "descriptor.json").write_bytes(text.encode("latin-1"))

    with pytest.raises(InvalidSkillError, match=f"is not JSON: .*{expected}"):
        read_descriptor_file(discover(tmp_path).activate("echo"))


async def test_a_descriptor_alone_makes_a_skill_callable(tmp_path: Path) -> None:
    """`attach_remote_skills`: the descriptor is the contract."""
    async with serve_in_memory() as served:
        skill_on_disk(tmp_path, served, "locked")
        runtime = SkillRuntime(discover(tmp_path))
        attached = attach_remote_skills(
            runtime, credentials=lambda _: ApiKey(KEY), transport=served.transport
        )
        response = await runtime.call("locked", '{"text": "Hello",}')

    assert attached == ["locked"]
    assert response.data == {"said": "Hello"}


@pytest.mark.parametrize("kind", ["plugin", "knowledge"])
async def test_what_runs_or_is_read_here_gets_no_remote_runner(
    tmp_path: Path, kind: str
) -> None:
    """Only ``api`` and ``task`` are called at their endpoint."""
    async with serve_in_memory() as served:
        skill_on_disk(tmp_path, served, "echo", contract=True, capability_type=kind)
        skill, contract = discover(tmp_path).contract("echo")

    assert remote_runners()(skill, contract) is None


async def test_a_faulty_descriptor_is_the_skills_fault(tmp_path: Path) -> None:
    """INVALID_SKILL, with what is wrong."""
    async with serve_in_memory() as served:
        skill_on_disk(tmp_path, served, "echo", contract=True, access="secret")
        response = await SkillRuntime(
            discover(tmp_path), runners=[remote_runners()]
        ).call("echo", {"text": "x"})
        with pytest.raises(InvalidSkillError, match="access"):
            remote_runners()(*discover(tmp_path).contract("echo"))

    assert (
        response.errors is not None and response.errors[0].code.value == "INVALID_SKILL"
    )


@pytest.mark.parametrize(
    ("name", "code", "recoverable"),
    [
        ("fails", "TOOL_EXECUTION_FAILED", True),
        ("breaks", "INTERNAL_ERROR", False),
        ("brief", "EXECUTION_TIMEOUT", False),
        ("locked", "AUTH_REQUIRED", False),
    ],
)
async def test_what_went_wrong_there_is_reported_here(
    name: str, code: str, recoverable: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """Every wire code becomes an envelope code with a next step."""
    async with serve_in_memory() as served:
        runtime = remote_runtime(served, name)
        response = await runtime.call(name, {"text": "x"})

    assert response.status == "failed" and response.errors is not None
    assert response.errors[0].code.value == code
    assert response.errors[0].recoverable is recoverable


async def test_arguments_that_only_the_server_refuses_are_reported_by_parameter() -> (
    None
):
    """The server checks again by its own contract: its violations reach the model as
    input errors.
    """
    async with serve_in_memory() as served:
        runtime = remote_runtime(served, "echo", lenient=True)
        response = await runtime.call("echo", {"text": ""})

    assert response.errors is not None
    error = response.errors[0]
    assert (
        error.recoverable
        and error.details is not None
        and error.details["path"] == "/text"
    )


async def test_the_deadline_of_the_call_goes_along() -> None:
    """The server receives the timeout, and a request to cancel after it."""
    seen: list[dict[str, Any]] = []
    async with serve_in_memory() as served:

        async def watched(request: WireRequest) -> WireResponse:
            if request.method == "POST":
                seen.append(json.loads(request.body))
            return await served.service.handle(request)

        served.transport = watched
        response = await remote_runtime(served, "slow").call(
            "slow", {"text": "x"}, timeout=2.0
        )

    assert 1 <= seen[0]["context"]["timeout_ms"] <= 2000
    assert response.errors is not None and response.errors[0].code.value in (
        "TOOL_TIMEOUT",
        "EXECUTION_TIMEOUT",
    )
    assert not response.errors[0].recoverable, "how far it came is unknown"


async def test_a_call_without_any_answer_names_its_key() -> None:
    """The server may have begun it a moment later: the key that the client made up is
    what finds it.
    """
    keys = []

    async def silent(request: WireRequest) -> WireResponse:
        keys.append(request.headers["idempotency-key"])
        await anyio.sleep_forever()
        raise AssertionError("unreachable")

    async with serve_in_memory() as served:
        client = RemoteClient(
            served.service.skills["slow"].descriptor, NoCredentials, silent, grace=0.0
        )
        with pytest.raises(RemoteError) as raised:
            await client.invoke(
                {"text": "x"}, timeout=0.5
            )  # time to begin on a busy machine

    assert raised.value.may_have_run
    assert raised.value.document.details == {"idempotency_key": keys[0]}


async def test_custom_credentials_reach_the_body_and_are_not_kept() -> None:
    """6.3: ``caller.credentials``; no execution contains them."""
    seen: list[dict[str, Any]] = []
    async with serve_in_memory() as served:

        async def watched(request: WireRequest) -> WireResponse:
            if request.method == "POST":
                seen.append(json.loads(request.body))
            return await served.service.handle(request)

        descriptor = served.service.skills["echo"].descriptor
        credentials = CustomCredentials(lambda auth: {"ticket": "t-1"})
        execution = await RemoteClient(descriptor, credentials, watched).invoke(
            {"text": "x"}
        )
        found = await served.service.executions.get(execution.execution_id)

    assert seen[0]["caller"]["credentials"] == {"ticket": "t-1"}
    assert found is not None and "t-1" not in json.dumps(found[0].to_dict())


async def test_a_refused_token_is_renewed_once() -> None:
    """A 401 asks the credentials again; the same answer is not sent twice."""
    shown: list[bool] = []

    class Renewing(ApiKey):
        async def __call__(self, auth: Any, is_refused: bool) -> Any:
            shown.append(is_refused)
            return await ApiKey(KEY if is_refused else "stale")(auth, is_refused)

    async with serve_in_memory() as served:
        client = served.client("locked")
        execution = await RemoteClient(
            client.descriptor, Renewing(""), served.transport
        ).invoke({"text": "x"})
        posts = served.service.metrics.to_text({})
        with pytest.raises(RemoteError, match="Authentication"):
            await RemoteClient(
                client.descriptor, ApiKey("wrong"), served.transport
            ).invoke({"text": "x"})

    assert execution.output == {"said": "x"}
    assert shown[:2] == [False, True]
    assert 'route="invoke",status="401"} 1' in posts


async def test_many_calls_at_once_each_get_their_own_answer() -> None:
    """A hundred at once, over one transport."""
    answers: dict[int, Any] = {}
    async with serve_in_memory() as served, anyio.create_task_group() as tasks:
        client = served.client("echo")

        async def call(number: int) -> None:
            answers[number] = (await client.invoke({"text": str(number)})).output

        for number in range(100):
            tasks.start_soon(call, number)

    assert answers == {number: {"said": str(number)} for number in range(100)}


def remote_runtime(served: Served, name: str, *, lenient: bool = False) -> SkillRuntime:
    """Return a runtime in which *name* is remote; *lenient* drops the text's schema
    from the contract.
    """
    client = served.client(name)
    contract = client.descriptor.to_contract(name)
    if lenient:
        document = contract.to_dict()
        document["input"]["properties"]["text"] = {"type": "string"}
        contract = type(contract).from_dict(document, name=name)
    runtime = SkillRuntime()
    register: Callable[[Any], Any] = runtime.implements(name, contract=contract)
    register(RemoteRunner(client))
    return runtime


@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_the_client_runs_on_both_event_loops(anyio_backend: str) -> None:
    """anyio alone: whichever loop the host has; the server's own side in memory too."""
    async with serve_in_memory() as served:
        execution = await served.client("echo").invoke({"text": "x"})
        cancelled = await served.client("slow").cancel(
            json.loads((await served.invoke("slow")).body)["execution_id"]
        )

    assert execution.output == {"said": "x"}
    assert cancelled.status.value == "cancelled"


async def test_a_refused_address_is_not_tried_again(tmp_path: Path) -> None:
    """The error names the argument that allows it, and no model is asked to wait."""
    async with serve_in_memory() as served:
        endpoint = served.service.skills["echo"].descriptor.to_dict()["endpoint"]
        endpoint["url"] = "http://127.0.0.1:8400/skills/echo/invoke"
        skill_on_disk(
            tmp_path, served, "echo", endpoint=endpoint, auth={"type": "none"}
        )
    runtime = SkillRuntime(discover(tmp_path))
    attach_remote_skills(runtime)

    response = await runtime.call("echo", {"text": "a"})

    assert response.errors is not None
    (error,) = response.errors
    assert "guard=AddressGuard(allowed={'127.0.0.1:8400'})" in error.message
    assert not error.recoverable
    assert error.suggested_action is not None
    assert "Try again" not in error.suggested_action
