"""Webhooks: signed as Standard Webhooks has it, repeated, for known callers alone, and
never inward.
"""

from __future__ import annotations

import json
import time
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from skillruntime.remote import AddressGuard, Execution, UnreachableError
from skillruntime.server import (
    KeyRing,
    SkillService,
    SkillWork,
    Webhooks,
    memory_executions,
)
from skillruntime.server.webhooks import sign
from tests import needs
from tests.remote.parts import ExecutionStatus, WireRequest, WireResponse
from tests.server.parts import Outcome, Ticket
from tests.server.serving import KEY, KEYS, Served, Skills, invocation, read

pytestmark = pytest.mark.anyio


async def outside(host: str, port: int) -> list[str]:
    """Resolve names without a network: ``inside.example`` lies inside, and an address
    is itself.
    """
    if host[0].isdigit():
        return [host]
    return ["10.0.0.1"] if host == "inside.example" else ["93.184.216.34"]


class Receiver:
    """Takes messages; the first *faults* of them fail."""

    def __init__(self, *faults: int | None) -> None:
        self.faults = list(faults)
        self.messages: list[WireRequest] = []

    async def __call__(self, request: WireRequest) -> WireResponse:
        self.messages.append(request)
        if self.faults:
            fault = self.faults.pop(0)
            if fault is None:
                raise UnreachableError("gone", was_sent=True)
            return WireResponse(fault)
        return WireResponse(204)


async def notified(
    receiver: Receiver, url: str = "https://hook.example/hook", key: str | None = KEY
) -> WireResponse:
    """Invoke a skill with a webhook, wait for its end and its message, and return the
    first response.
    """
    expected = min(3, len(receiver.faults) + 1)
    skills = Skills()
    runtime, skills_served = skills.runtime()
    webhooks = Webhooks(
        b"secret",
        guard=AddressGuard(resolve=outside),
        transport=receiver,
        pauses=(0, 0),
    )
    async with memory_executions(
        SkillWork(runtime, skills_served), notify=webhooks.notify
    ) as executions:
        service = SkillService(
            skills_served, executions, authenticate=KeyRing(KEYS), webhooks=webhooks
        )
        served = Served(service, skills, service.handle)
        document = invocation("echo", webhook=url)
        response = await served.ask(
            "POST", "/skills/echo/invoke", document, key=key, prefer="wait=30"
        )
        secret = read(await served.ask("GET", "/webhook-secret", key=KEY))["secret"]
        expected = expected if response.status < 300 else 0
        while len(receiver.messages) < expected:
            await anyio.sleep(0.005)
    for message in receiver.messages:
        headers = message.headers
        signed = sign(
            secret,
            headers["webhook-id"],
            int(headers["webhook-timestamp"]),
            message.body,
        )
        assert headers["webhook-signature"] == signed
    return response


def test_the_reference_library_accepts_a_signature() -> None:
    """`standardwebhooks`, the library of the specification's authors, as a receiver
    would use it.
    """
    reference = needs.package("standardwebhooks")
    secret, body, now = (
        Webhooks(b"secret").secret_of("ann"),
        '{"said":"技能"}'.encode(),
        int(time.time()),
    )
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": sign(secret, "msg_1", now, body),
    }

    assert reference.Webhook(secret).verify(body, headers) == {"said": "技能"}
    with pytest.raises(reference.WebhookVerificationError):
        reference.Webhook(secret).verify(body + b" ", headers)


async def test_the_end_is_reported_and_signed() -> None:
    """``webhook-id``, ``webhook-timestamp``, ``webhook-signature``, with the caller's
    own secret.
    """
    receiver = Receiver()

    response = await notified(receiver)

    message = json.loads(receiver.messages[0].body)
    assert message["type"] == "execution.completed"
    assert message["data"]["execution_id"] == read(response)["execution_id"]
    assert message["data"]["output"] == {"said": "hi"}
    assert (
        receiver.messages[0].headers["webhook-id"]
        == f"msg_{read(response)['execution_id']}"
    )


async def test_an_output_with_half_a_surrogate_pair_is_reported() -> None:
    """A Python skill can return one, and UTF-8 has none: it is replaced, as in every
    answer.
    """
    receiver = Receiver()
    webhooks = Webhooks(b"secret", transport=receiver)
    ticket = Ticket(
        "exec-1",
        "ann",
        "s",
        "s@1",
        "s",
        {},
        "f",
        1.0,
        webhook="https://hook.example/hook",
    )

    outcome = Outcome(ExecutionStatus.COMPLETED, {"said": "half \ud83d"}, True)
    await webhooks.notify(
        ticket,
        outcome.of(ticket, created_at="2026-01-01T00:00:00Z", now=0.0, kept_for=1.0),
    )

    assert json.loads(receiver.messages[0].body)["data"]["output"] == {"said": "half ?"}


async def test_a_receiver_that_fails_is_reported_again() -> None:
    """With the same id, so that it knows the message again; at last it is given up."""
    receiver = Receiver(500, None)
    await notified(receiver)
    hopeless = Receiver(500, 500, 500, 500, 500)
    await notified(hopeless)

    assert len(receiver.messages) == 3
    assert len({message.headers["webhook-id"] for message in receiver.messages}) == 1
    assert len(hopeless.messages) == 3


@pytest.mark.parametrize(
    "url",
    [
        "https://inside.example/",
        "http://127.0.0.1/",
        "ftp://hook.example/",
        "nonsense",
        "http://[::1/",
        "http://hook.example:99999/",
    ],
)
async def test_nothing_inward_is_reported(url: str) -> None:
    """The address is refused before anything is begun."""
    receiver = Receiver()

    response = await notified(receiver, url)

    assert response.status == 400
    assert receiver.messages == []


async def test_a_other_caller_names_no_address() -> None:
    """Only authenticated callers: otherwise anyone could make the server send requests
    anywhere.
    """
    receiver = Receiver()

    response = await notified(receiver, key=None)

    assert response.status == 400
    assert receiver.messages == []


async def test_a_redirect_is_not_followed_to_another_origin() -> None:
    """A public receiver must not lead the server to an address inside."""
    requests: list[bytes] = []
    inside: list[bytes] = []

    async def redirect(stream: SocketStream) -> None:
        async with stream:
            requests.append(await stream.receive())
            target = (
                f"http://127.0.0.1:{other.extra(SocketAttribute.local_port)}/inside"
            )
            await stream.send(
                "HTTP/1.1 307 So\r\n"
                f"location: {target}\r\n"
                "content-length: 0\r\n"
                "\r\n".encode()
            )

    async def take(stream: SocketStream) -> None:
        async with stream:
            inside.append(await stream.receive())

    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    other = await anyio.create_tcp_listener(local_host="127.0.0.1")
    port = listener.extra(SocketAttribute.local_port)
    guard = AddressGuard(allowed=frozenset({f"127.0.0.1:{port}"}))
    webhooks = Webhooks(b"secret", guard=guard, pauses=(0,))
    async with listener, other, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, redirect)
        tasks.start_soon(other.serve, take)
        await webhooks.notify(*ended(f"http://127.0.0.1:{port}/hook"))
        tasks.cancel_scope.cancel()

    assert len(requests) == 2 and requests[0].startswith(b"POST /hook ")
    assert inside == []


async def test_a_name_that_resolves_inside_later_is_not_connected_to() -> None:
    """DNS rebinding: the address is checked again at each attempt, and that very
    address is connected to.
    """
    answers = ["93.184.216.34", "127.0.0.1", "127.0.0.1"]
    asked: list[str] = []

    async def resolve(host: str, port: int) -> list[str]:
        asked.append(host)
        return [answers[len(asked) - 1]]

    webhooks = Webhooks(b"secret", guard=AddressGuard(resolve=resolve), pauses=(0,))
    at_submit = await webhooks.allows("https://rebinding.example/")
    await webhooks.notify(*ended("https://rebinding.example/"))

    assert at_submit
    assert asked == ["rebinding.example"] * 3, "two attempts, and no connection"


@pytest.mark.parametrize(
    "url",
    [
        "http://2130706433/",
        "http://0x7f000001/",
        "http://127.1/",
        "http://0/",
        "http://[::ffff:127.0.0.1]/",
        "http://１２７.0.0.1/",
        "http://127。0。0。1/",
        "http://1.1.1.1@127.0.0.1/",
        "http://1.1.1.1:0/",
        "http://192.0.0.9/",
        "http://[64:ff9b::7f00:1]/",
    ],
)
async def test_an_address_inside_is_known_in_every_spelling(url: str) -> None:
    """The system's resolver reads numbers of many forms as addresses: what it answers
    is what is checked.
    """
    assert not await Webhooks(b"secret").allows(url)


def ended(webhook: str) -> tuple[Ticket, Execution]:
    """Return a ticket with this webhook, and its execution, which has completed."""
    fields: dict[str, Any] = {
        "fingerprint": "f",
        "timeout": 1.0,
        "arguments": {},
        "webhook": webhook,
    }
    ticket = Ticket("exec-a", "ann", "echo", "echo@1", "echo", **fields)
    outcome = Outcome(ExecutionStatus.COMPLETED, {}, True)
    return ticket, outcome.of(
        ticket, created_at="2025-03-20T14:30:00Z", now=0.0, kept_for=1.0
    )
