"""The served OpenAPI document is true: schemathesis tries what it says, and what it
forbids, on a real server.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import anyio.from_thread
import hypothesis
import pytest

from skillruntime.contract import Schema
from skillruntime.remote import AccessPolicy, SkillDescriptor
from skillruntime.server import Limits
from skillruntime.server.http.openapi import build_openapi
from tests import needs
from tests.remote.test_descriptor import TRANSLATOR
from tests.server.serving import KEY, serve_over_socket_from_memory

schemathesis = needs.package("schemathesis")


@contextmanager
def served_elsewhere() -> Iterator[str]:
    """Serve the test skills from another thread, with every skill that would wait let
    through; give the address.
    """
    address: list[str] = []
    ready, done = threading.Event(), threading.Event()

    async def serve() -> None:
        async with serve_over_socket_from_memory(
            limits=Limits(wait_seconds=0.05, requests_per_minute=1e6)
        ) as served:
            served.skills.gate.set()
            address.append(served.base)
            ready.set()
            await anyio.to_thread.run_sync(done.wait)

    thread = threading.Thread(target=anyio.run, args=(serve,))
    thread.start()
    assert ready.wait(300)
    try:
        yield address[0]
    finally:
        done.set()
        thread.join(300)


@pytest.mark.slow
@pytest.mark.parametrize("key", [None, KEY], ids=["anonymous", "with-key"])
def test_the_server_does_what_its_document_says(key: str | None) -> None:
    """Every operation, with sound and unsound data, with and without credentials: no
    5xx, nothing undocumented.
    """
    from schemathesis.specs.openapi.checks import ignored_auth

    headers = {"X-API-Key": key} if key else {}
    tried = 0
    with served_elsewhere() as base, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tool's own making
        schema = schemathesis.openapi.from_url(f"{base}/openapi.json", headers=headers)
        for result in schema.get_all_operations():
            operation = result.ok()

            @hypothesis.settings(
                max_examples=5,
                deadline=None,
                derandomize=True,
                database=None,
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            @hypothesis.given(case=operation.as_strategy())
            def attempt(case: schemathesis.Case) -> None:
                # A private skill answers an anonymous caller with 404 (section 7).
                excluded = [ignored_auth] if "/hidden" in case.path else []
                case.call_and_validate(headers=headers, excluded_checks=excluded)

            attempt()
            tried += 1

    assert tried >= 15


def test_the_document_is_openapi_and_has_one_path_for_each_skill() -> None:
    """OpenAPI 3.1, with the skill's own inputs in the request's schema."""
    descriptor = SkillDescriptor.from_dict(TRANSLATOR)

    document = build_openapi([descriptor], descriptor.provider)

    assert document["openapi"] == "3.1.0"
    post = document["paths"]["/skills/com.example.translate-v1/invoke"]["post"]
    inputs = post["requestBody"]["content"]["application/json"]["schema"]["properties"][
        "inputs"
    ]
    assert Schema(inputs).is_valid({"text": "hi", "target_language": "de"})
    assert not Schema(inputs).is_valid({"text": "hi"})
    assert descriptor.access is AccessPolicy.RESTRICTED and post["security"] == [
        {"api_key": []}
    ]


def test_what_probes_and_prometheus_ask_is_in_the_document() -> None:
    """With the statuses of a server that drains, and of a caller without a key."""
    descriptor = SkillDescriptor.from_dict(TRANSLATOR)

    paths = build_openapi([descriptor], descriptor.provider)["paths"]

    ready, metrics = (
        paths[path]["get"]["responses"] for path in ("/ready", "/metrics")
    )
    assert sorted(ready) == ["200", "503"]
    assert sorted(metrics) == ["200", "401", "429", "503"]
    assert [*metrics["200"]["content"]] == ["text/plain"]
    assert [*metrics["401"]["content"]] == ["application/json"]


def test_an_id_is_escaped_in_its_path_and_any_text_is_a_callers_id() -> None:
    """4.2 and 6.3 name no form of an id; braces would be a template of OpenAPI."""
    descriptor = SkillDescriptor.from_dict({**TRANSLATOR, "id": "urn:x/{技}"})

    document = build_openapi([descriptor], descriptor.provider)

    path = "/skills/urn%3Ax%2F%7B%E6%8A%80%7D"
    assert [each for each in document["paths"] if each.startswith("/skills/")] == [
        path,
        f"{path}/invoke",
    ]
    request = document["paths"][f"{path}/invoke"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    assert request["properties"]["caller"] == {"$ref": "#/components/schemas/Caller"}
    caller = Schema(document["components"]["schemas"]["Caller"])
    assert [
        caller.is_valid({"id": each, "type": "user"})
        for each in ("技 能", "", "a\0", "x" * 501)
    ] == [True] + [False] * 3


def test_webhooks_are_in_the_document_where_the_server_sends_them() -> None:
    """The address of their secret, and the field of an invocation."""
    plain = SkillDescriptor.from_dict(TRANSLATOR)
    notified = SkillDescriptor.from_dict(
        {**TRANSLATOR, "extensions": {"webhooks": True}}
    )

    without = build_openapi([plain], plain.provider)
    with_them = build_openapi([notified], notified.provider)

    assert ["/webhook-secret" in each["paths"] for each in (without, with_them)] == [
        False,
        True,
    ]
    contexts = [
        each["components"]["schemas"]["Context"]["properties"]
        for each in (without, with_them)
    ]
    assert ["webhook" in each for each in contexts] == [False, True]
