"""What a server and a client refuse: look-alike hosts, wrong scopes, revoked keys,
forged hosts and addresses.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from skillruntime import SkillRuntime, discover
from skillruntime.errors import InvalidSkillError, SkillOutputError
from skillruntime.remote import AccessPolicy, RemoteClient, variable_for
from skillruntime.remote.hosts import origin_of
from skillruntime.server import (
    KeyRing,
    Limits,
    Principal,
    SkillService,
    SkillWork,
    add_key,
    memory_executions,
    revoke_keys,
    serve_catalog,
)
from skillruntime.server.callers.key_store import KeyFile
from tests.remote.invoking import descriptor
from tests.remote.parts import NoCredentials, WireRequest, WireResponse, is_inside
from tests.server.parts import hash_key
from tests.server.serving import (
    KEY,
    Served,
    Skills,
    invocation,
    read,
    serve_in_memory,
    serve_over_socket_from_memory,
)

pytestmark = pytest.mark.anyio


def test_a_look_alike_host_has_neither_the_key_nor_the_origin_of_another() -> None:
    """A dotless i in upper case is an I: the name is encoded (IDNA) before it is
    compared.
    """
    assert variable_for("https://apı.test/x") != variable_for("https://api.test/x")
    assert origin_of("https://apı.test/x") != origin_of("https://api.test/x")
    assert origin_of("https://API.test:443/y") == origin_of("https://api.test/x")


@pytest.mark.parametrize(
    "address",
    ["192.0.0.9", "192.0.0.170", "192.88.99.1", "240.0.0.1", "64:ff9b:1::1", "fec0::1"],
)
def test_all_special_ranges_are_inside(address: str) -> None:
    """Python's ``is_global`` lets single addresses of these ranges through."""
    assert is_inside(address)


async def test_a_token_that_may_read_cannot_invoke() -> None:
    """Scopes are enforced: 403 with insufficient_scope (RFC 6750, 3.1)."""
    scoped = {
        hash_key("reader"): Principal("eve", scopes=frozenset({"skill:read"})),
        hash_key("invoker"): Principal("eve", scopes=frozenset({"skill:invoke"})),
        hash_key("other"): Principal("eve", scopes=frozenset({"profile"})),
    }
    skills = Skills()
    runtime, published = skills.runtime()
    async with memory_executions(SkillWork(runtime, published)) as executions:
        service = SkillService(published, executions, authenticate=KeyRing(scoped))
        served = Served(service, skills, service.handle)
        refused = await served.invoke("echo", key="reader")
        accepted = await served.invoke("echo", key="invoker", prefer="wait=30")
        path = f"/executions/{read(accepted)['execution_id']}"
        seen = await served.ask("GET", path, key="reader")
        unseen = await served.ask("GET", path, key="other")
        uncancelled = await served.ask("DELETE", path, key="reader")
        listed = await served.ask("GET", "/executions", key="reader")

    statuses = [
        each.status for each in (refused, accepted, seen, unseen, uncancelled, listed)
    ]
    assert statuses == [403, 200, 200, 403, 403, 200]
    assert "insufficient_scope" in refused.headers["www-authenticate"]
    assert read(refused)["error"]["code"] == "PERMISSION_DENIED"


async def test_a_key_in_the_body_is_a_key_and_must_agree_with_the_header() -> None:
    """6.3 shows ``caller.credentials.api_key``; it is neither kept nor part of the
    request's fingerprint.
    """

    def document(key: str) -> dict[str, Any]:
        written = invocation("locked")
        written["caller"]["credentials"] = {"api_key": key}
        return written

    async with serve_in_memory() as served:
        path = "/skills/locked/invoke"
        by_body = await served.ask(
            "POST", path, document(KEY), prefer="wait=30", idempotency_key="one"
        )
        by_header = await served.ask(
            "POST", path, invocation("locked"), key=KEY, idempotency_key="one"
        )
        wrong = await served.ask("POST", path, document("wrong"))
        both = await served.ask("POST", path, document("wrong"), key=KEY)
        found = await served.service.executions.get(read(by_body)["execution_id"])

    assert [each.status for each in (by_body, by_header, wrong, both)] == [
        200,
        200,
        401,
        401,
    ]
    assert read(by_body)["execution_id"] == read(by_header)["execution_id"]
    assert found is not None and KEY not in json.dumps(found[0].to_dict())


async def test_who_waits_with_a_revoked_key_does_not_receive_the_result(
    tmp_path: Path,
) -> None:
    """Neither of the long polls that were open when the key was revoked."""
    path = tmp_path / "keys.json"
    key = add_key(path, "ann")
    answers: dict[str, WireResponse] = {}
    async with (
        serve_over_socket_from_memory(authenticate=KeyFile(path)) as served,
        anyio.create_task_group() as tasks,
    ):
        address = (
            f"/executions/{read(await served.invoke('slow', key=key))['execution_id']}"
        )
        await served.skills.started.wait()

        async def wait() -> None:
            answers["poll"] = await served.ask(
                "GET", address, key=key, prefer="wait=30"
            )

        async def begin_and_wait() -> None:
            answers["invoke"] = await served.invoke(
                "slow", "two", key=key, prefer="wait=30"
            )

        tasks.start_soon(wait)
        tasks.start_soon(begin_and_wait)
        with anyio.fail_after(300):
            while len(served.service._waits) < 2:
                await anyio.lowlevel.checkpoint()
        revoke_keys(path, "ann")
        served.skills.gate.set()

    assert (answers["poll"].status, b"said" in answers["poll"].body) == (401, False)
    assert (answers["invoke"].status, read(answers["invoke"])["status"]) == (
        202,
        "accepted",
    )


async def test_a_key_is_revoked_without_a_restart(tmp_path: Path) -> None:
    """The file is read again when it has changed."""
    path = tmp_path / "keys.json"
    key, other = add_key(path, "ann"), add_key(path, "bob")
    ring = KeyFile(path)
    request = WireRequest("GET", "http://x/", {"x-api-key": key})
    before = await ring(request, None)

    removed = revoke_keys(path, "ann")
    with pytest.raises(Exception, match=r"^$"):
        await ring(request, None)
    bob = await ring(WireRequest("GET", "http://x/", {"x-api-key": other}), None)
    path.write_text("{ half a file")
    os.utime(path, (1, 1))
    still = await ring(WireRequest("GET", "http://x/", {"x-api-key": other}), None)

    assert removed == 1
    assert before == Principal("ann")
    assert bob == still == Principal("bob")


async def test_an_empty_cursor_is_refused() -> None:
    """As the OpenAPI document says; it must not be the first page again."""
    async with serve_in_memory() as served:
        response = await served.ask("GET", "/executions?cursor=", key=KEY)

    assert response.status == 400
    assert read(response)["error"]["details"]["violations"][0]["field"] == "/cursor"


@pytest.mark.parametrize("path", ["/.well-known/skill-sharing", "/executions"])
async def test_a_query_with_too_many_fields_is_refused(path: str) -> None:
    """400 and how many there may be; it was an internal error."""
    async with serve_in_memory() as served:
        response = await served.ask(
            "GET", path + "?" + "&".join(["tag=x"] * 101), key=KEY
        )
        fits = await served.ask("GET", path + "?" + "&".join(["tag=x"] * 100), key=KEY)

    assert (response.status, fits.status) == (400, 200)
    assert read(response)["error"]["details"]["violations"] == [
        {"field": "query", "expected": "at most 100 fields", "actual": "101 fields"}
    ]


@pytest.mark.parametrize(
    ("peers", "statuses"),
    [
        (["2001:db8::1", "2001:db8::2:2", "2001:db8:0:0:f::"], [401, 429, 429]),
        (["2001:db8::1", "2001:db8:0:1::1", "2001:db8:0:2::1"], [401, 401, 401]),
        (["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.2"], [401, 429, 401]),
    ],
)
async def test_one_ipv6_network_has_one_limit(
    peers: list[str], statuses: list[int]
) -> None:
    """A host has the addresses of a whole /64 network; an IPv4 one is one address,
    however it is written.
    """
    limits = Limits(failed_logins_per_minute=1)
    async with serve_in_memory(limits=limits) as served:
        answers = [
            await served.service.handle(
                WireRequest("GET", "/executions", {"x-api-key": "wrong"}, b"", peer)
            )
            for peer in peers
        ]

    assert [each.status for each in answers] == statuses


async def test_an_output_beyond_the_limit_fails_the_execution() -> None:
    """Outputs are bounded: the event loop writes and reads them."""
    skills = Skills()
    runtime, published = skills.runtime()
    async with memory_executions(
        SkillWork(runtime, published, output_bytes=20)
    ) as executions:
        service = SkillService(published, executions, authenticate=KeyRing({}))
        served = Served(service, skills, service.handle)
        short = await served.invoke("echo", "x", prefer="wait=30")
        long = await served.invoke("echo", "x" * 100, prefer="wait=30")

    assert read(short)["output"] == {"said": "x"}
    assert read(long)["status"] == "failed"
    assert read(long)["error"]["code"] == "INVALID_OUTPUT"
    assert "20" in read(long)["error"]["message"]


async def test_no_tokens_are_counted_on_a_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A megabyte takes more than a second to count, and no model reads it there."""

    def fail(*arguments: Any, **options: Any) -> None:
        raise AssertionError("counted")

    monkeypatch.setattr(
        "skillruntime.runtime.conversation_state.ConversationState._wait", fail
    )
    async with serve_in_memory() as served:
        response = await served.invoke("echo", "hello", prefer="wait=30")

    assert read(response)["output"] == {"said": "hello"}


async def test_a_bare_client_checks_the_output() -> None:
    """A server that breaks its descriptor's promise is not believed."""

    async def transport(request: WireRequest) -> WireResponse:
        stamps = {
            "created_at": "2025-03-20T14:30:00Z",
            "updated_at": "2025-03-20T14:30:00Z",
        }
        document = {
            "execution_id": "e",
            "status": "completed",
            "skill_id": described.id,
            "output": {"wrong": 1},
        }
        return WireResponse(
            200, {}, json.dumps({**document, "timestamps": stamps}).encode()
        )

    described = descriptor()
    written = described.to_dict()
    written["output"] = {"schema": {"type": "object", "required": ["said"]}}
    promising = type(described).from_dict(written)
    with pytest.raises(SkillOutputError):
        await RemoteClient(promising, NoCredentials, transport).invoke({"text": "hi"})


async def test_the_trace_id_comes_back() -> None:
    """In the metadata of every document of the execution, from the first one on."""
    async with serve_in_memory() as served:
        document = invocation("slow", trace_id="trace-1")
        first = await served.ask("POST", "/skills/slow/invoke", document)
        served.skills.gate.set()
        last = await served.ask(
            "GET", f"/executions/{read(first)['execution_id']}", prefer="wait=30"
        )

    assert read(first)["metadata"]["trace_id"] == "trace-1"
    assert read(last)["metadata"]["trace_id"] == "trace-1"


async def talk(port: int, *parts: bytes) -> bytes:
    """Send *parts* over one connection, and return all that comes back until it is
    closed.
    """
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        for part in parts:
            await stream.send(part)
        received = b""
        with anyio.fail_after(300):
            while True:
                try:
                    received += await stream.receive()
                except anyio.EndOfStream:
                    return received


async def test_a_413_reaches_a_client_that_sends_its_whole_body() -> None:
    """The rest of the body is read, for closing a socket with unread bytes would reset
    the connection.
    """
    async with serve_over_socket_from_memory(limits=Limits(body_bytes=1000)) as served:
        port = int(served.base.rpartition(":")[2])
        head = b"POST /skills/echo/invoke HTTP/1.1\r\nhost: x\r\ncontent-length: 3000000\r\n\r\n"
        answer = await talk(port, head, b"x" * 3_000_000)

    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"REQUEST_TOO_LARGE" in answer


async def test_what_is_not_http_is_refused_with_the_envelope() -> None:
    """Every refusal is the envelope, those of the HTTP parser too."""
    async with serve_over_socket_from_memory() as served:
        answer = await talk(
            int(served.base.rpartition(":")[2]), b"\x00\x01 nonsense\r\n\r\n"
        )

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert (
        json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"]
        == "VALIDATION_ERROR"
    )


async def test_a_head_that_does_not_arrive_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A connection that sends half a head, or nothing, holds its place for a limited
    time.
    """
    monkeypatch.setattr(
        "skillruntime.server.http.protocol.BoundedProtocol.head_seconds", 0.2
    )
    async with serve_over_socket_from_memory() as served:
        port = int(served.base.rpartition(":")[2])
        half = await talk(port, b"GET /health HTTP/1.1\r\nhost:")
        nothing = await talk(port)

    assert half.startswith(b"HTTP/1.1 408 ") and b"REQUEST_TIMEOUT" in half
    assert nothing.startswith(b"HTTP/1.1 408 ")


async def test_a_foreign_host_name_is_refused() -> None:
    """A page under a name of its own that resolves to this machine reaches nothing (DNS
    rebinding).
    """
    from starlette.testclient import TestClient

    from skillruntime.server import create_app

    async with serve_in_memory() as served:
        app = create_app(served.service, hosts=frozenset({"localhost"}))
        client = TestClient(app, base_url="http://localhost:8400")
        own = await anyio.to_thread.run_sync(lambda: client.get("/health"))
        foreign = await anyio.to_thread.run_sync(
            lambda: client.get("/health", headers={"host": "evil.test"})
        )

    assert own.status_code == 200
    assert foreign.status_code == 400
    assert foreign.json()["error"]["details"]["violations"][0]["field"] == "Host"


def publish_echo(
    folder: Path, contract: dict[str, Any], **changes: Any
) -> dict[str, Any]:
    """Return what is published of a skill whose contract.json has a descriptor.json
    beside it.
    """
    skill = folder / "echo"
    skill.mkdir()
    (skill / "SKILL.md").write_text(
        "---\nname: echo\ndescription: Says it\n---\nCall it.\n"
    )
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "additionalProperties": False,
    }
    (skill / "contract.json").write_text(
        json.dumps({"version": "1.0.0", "input": schema, **contract})
    )
    written = {
        **descriptor().to_dict(),
        "inputs": [{"name": "text", "type": "string"}],
        "output": {},
    }
    (skill / "descriptor.json").write_text(
        json.dumps({**written, "version": "1.0.0", **changes})
    )
    [published] = serve_catalog(
        SkillRuntime(discover(folder)), base_url="http://localhost:8400"
    )
    return published.descriptor.to_dict()


SAID = {
    "type": "object",
    "properties": {"said": {"type": "string"}},
    "required": ["said"],
}


@pytest.mark.parametrize(
    ("contract", "changes", "message"),
    [
        (
            {},
            {"inputs": [{"name": "words", "type": "string", "required": True}]},
            "inputs/text, inputs/words, required inputs",
        ),
        ({}, {"version": "2.0.0"}, "version"),
        ({}, {"output": {"schema": SAID}}, "differ in output"),
        (
            {"output": SAID},
            {"output": {"schema": {"type": "array"}}},
            "differ in output",
        ),
        (
            {"output": {"type": "object"}},
            {"output": {"schema": SAID}},
            "differ in output",
        ),
        (
            {},
            {"protocol": {"version": "2.0.0"}},
            "version 2.0.0 of the protocol; this server speaks 1.0.0",
        ),
    ],
)
def test_a_descriptor_that_differs_from_the_contract_is_refused(
    contract: dict[str, Any], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """What is published is what is enforced: the message names the difference."""
    with pytest.raises(InvalidSkillError, match=message):
        publish_echo(tmp_path, contract, **changes)


def test_what_a_descriptor_leaves_out_is_published_as_it_is_enforced(
    tmp_path: Path,
) -> None:
    """The contract's output and shorter timeout, and the protocol's version that the
    server speaks.
    """
    said = {**SAID, "description": "Words only"}
    endpoint = {"url": "https://x.test/invoke", "timeout_ms": 90_000}
    changes = {
        "endpoint": endpoint,
        "protocol": {"version": "1.7.0"},
        "output": {"schema": {"type": "object"}},
    }
    published = publish_echo(
        tmp_path,
        {"output": said, "run": {"script": "r.py", "timeout_seconds": 5}},
        **changes,
    )

    assert published["output"] == {"content_type": "application/json", "schema": said}
    assert (published["endpoint"]["timeout_ms"], published["protocol"]["version"]) == (
        5000,
        "1.0.0",
    )


@pytest.mark.parametrize(
    ("trusted", "options", "access"),
    [
        (False, {}, "restricted"),
        (False, {"public": True}, "public"),
        (True, {}, "public"),
    ],
)
def test_an_untrusted_author_makes_no_skill_public(
    tmp_path: Path, trusted: bool, options: dict[str, Any], access: str
) -> None:
    """Only the host does, or an author whom the host trusts."""
    publish_echo(tmp_path, {}, access="public")
    runtime = SkillRuntime(discover(tmp_path, trusted=trusted))

    [published] = serve_catalog(
        runtime,
        base_url="http://localhost:8400",
        access=AccessPolicy.RESTRICTED,
        **options,
    )

    assert published.descriptor.access == access


@pytest.mark.parametrize("name", ["技能-1", "urn:x:y", "a b", "a/b", "%2F", ".", ".."])
async def test_an_id_may_be_any_string(name: str) -> None:
    """Percent-encoded in the paths; the skill is found, called and followed under
    it.
    """
    from dataclasses import replace

    from skillruntime.remote import SkillDescriptor
    from skillruntime.remote.hosts import escape_segment

    skills = Skills()
    runtime, published = skills.runtime()
    echo = next(each for each in published if each.id == "echo")
    url = f"http://127.0.0.1:8400/skills/{escape_segment(name)}/invoke"
    named = replace(
        echo,
        descriptor=replace(
            echo.descriptor,
            id=name,
            endpoint=replace(echo.descriptor.endpoint, url=url),
        ),
    )
    assert SkillDescriptor.from_dict(named.descriptor.to_dict()).id == name
    async with memory_executions(SkillWork(runtime, [named])) as executions:
        service = SkillService([named], executions)
        execution = await RemoteClient(
            named.descriptor, NoCredentials, service.handle
        ).invoke({"text": "hi"})

    assert execution.skill_id == name
    assert execution.output == {"said": "hi"}


@pytest.mark.parametrize("name", ["", "a\x00b"])
def test_an_empty_id_and_one_with_nul_are_refused(name: str) -> None:
    """No database and no path could carry them."""
    with pytest.raises(InvalidSkillError):
        type(descriptor()).from_dict({**descriptor().to_dict(), "id": name})


def test_a_content_type_may_carry_parameters() -> None:
    """``application/json; charset=utf-8`` is JSON."""
    written = descriptor().to_dict()
    written["endpoint"]["content_type"] = "application/json; charset=utf-8"

    assert (
        type(descriptor()).from_dict(written).endpoint.content_type
        == "application/json; charset=utf-8"
    )
