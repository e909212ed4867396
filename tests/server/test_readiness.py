"""A server that stops waits until those who ask whether it is ready have heard it."""

from __future__ import annotations

import pytest

from skillruntime.server.readiness import Readiness
from tests.remote.parts import WireRequest
from tests.server.serving import read, serve_in_memory

pytestmark = pytest.mark.anyio


def asked_by(peer: str, agent: str = "") -> WireRequest:
    """Return a question of a proxy."""
    url = "http://localhost/ready"
    return WireRequest("GET", url, {"user-agent": agent}, b"", peer)


def test_each_asker_has_to_hear_it() -> None:
    """A container's own check is another asker than the proxy at the same address."""
    readiness = Readiness()
    known = [(readiness.is_asked(), readiness.is_known())]
    proxy, check = asked_by("192.0.2.1"), asked_by("192.0.2.1", "check")

    for request, is_ready in (
        (proxy, True),
        (check, True),
        (proxy, False),
        (check, False),
        (proxy, True),
    ):
        readiness.note(request, is_ready=is_ready)
        known.append((readiness.is_asked(), readiness.is_known()))

    assert known == [
        (False, True),
        (True, False),
        (True, False),
        (True, False),
        (True, True),
        (True, False),
    ]


def test_askers_are_limited_in_number() -> None:
    """Anyone may ask, under any name."""
    readiness = Readiness()

    for number in range(200):
        readiness.note(asked_by("192.0.2.1", str(number)), is_ready=True)
    for number in range(100):
        readiness.note(asked_by("192.0.2.1", str(number)), is_ready=False)

    assert readiness.is_known()


async def test_the_service_notes_who_asks() -> None:
    """With each answer of `/ready`."""
    async with serve_in_memory() as served:
        ready = await served.ask("GET", "/ready")
        before = served.service.readiness.is_known()
        served.service.refuse_work()
        stopping = await served.ask("GET", "/ready")
        after = served.service.readiness.is_known()

    assert (ready.status, stopping.status) == (200, 503)
    assert read(stopping) == {"status": "stopping"}
    assert (before, after) == (False, True)
