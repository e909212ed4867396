"""Client and server joined in memory, and the same over a real socket."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import ANY

import anyio
import pytest

from skillruntime.remote import CustomCredentials, Execution, RemoteClient, RemoteError
from skillruntime.server import (
    BadCredentialsError,
    KeyRing,
    Principal,
    SkillService,
    SkillWork,
    any_of,
    memory_executions,
)
from tests.remote.parts import (
    AuthConfig,
    AuthType,
    ExecutionStatus,
    RetryHint,
    WireRequest,
    WireResponse,
)
from tests.server.serving import (
    KEY,
    KEYS,
    NARROW_KEY,
    OPERATOR_KEY,
    OTHER_KEY,
    Served,
    Serving,
    Skills,
    invocation,
    read,
)

pytestmark = pytest.mark.anyio


async def test_a_skill_is_invoked_and_followed_to_its_end(serving: Serving) -> None:
    """POST, then status until the output is there."""
    async with serving() as served:
        execution = await served.client("echo").invoke({"text": "Hello"})

    assert execution.status is ExecutionStatus.COMPLETED
    assert execution.output == {"said": "Hello"}
    assert execution.timestamps.completed_at is not None
    assert execution.timestamps.expires_at is not None


async def test_accepted_running_completed_are_seen_by_one_who_polls(
    serving: Serving,
) -> None:
    """Section 6.2's walk, and progress on the way."""
    async with serving() as served, anyio.create_task_group() as tasks:
        seen: list[Execution] = []
        client = served.client("slow", wait_seconds=0)

        def note(execution: Execution) -> None:
            seen.append(execution)
            if execution.status is ExecutionStatus.RUNNING:
                served.skills.gate.set()

        await client.invoke({"text": "x"}, on_change=note)
        tasks.cancel_scope.cancel()

    statuses = list(dict.fromkeys(execution.status.value for execution in seen))
    assert statuses == ["accepted", "running", "completed"]
    assert any(
        execution.progress is not None and execution.progress.message == "half way"
        for execution in seen
    )


async def test_a_202_has_the_fields_of_section_6_2(serving: Serving) -> None:
    """Section 6.2: ``{execution_id, status: "accepted"}``."""
    async with serving() as served:
        response = await served.invoke("slow")

    document = read(response)
    assert response.status == 202
    assert document["status"] == "accepted"
    assert document["skill_id"] == "slow"
    assert re.fullmatch(r"exec-[a-z2-7]{32}", document["execution_id"])
    assert response.headers["retry-after"] == "1"


async def test_a_skills_own_failure_is_a_failed_execution_with_its_first_code(
    serving: Serving,
) -> None:
    """What it returned lies whole in the output."""
    async with serving() as served:
        execution = await served.client("fails").invoke({"text": "x"})

    assert execution.status is ExecutionStatus.FAILED
    assert execution.output["left"] == 0
    assert execution.error is not None
    assert execution.error.message == "Used up"
    assert execution.error.code == "QUOTA_OF_MARS"
    assert execution.error.details == {
        "code": "QUOTA_OF_MARS",
        "recoverable": True,
        "suggested_action": ANY,
    }


@pytest.mark.parametrize(
    ("name", "code"), [("breaks", "INTERNAL_ERROR"), ("liar", "INVALID_OUTPUT")]
)
async def test_a_broken_skill_fails_without_words_from_inside(
    serving: Serving, name: str, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug and a broken promise are failures; nothing of a traceback reaches the
    wire.
    """
    async with serving() as served:
        execution = await served.client(name).invoke({"text": "x"})

    assert execution.status is ExecutionStatus.FAILED
    assert execution.error is not None and execution.error.code == code
    assert "secret" not in str(execution.to_dict())


async def test_a_run_past_its_deadline_is_the_protocols_timeout(
    serving: Serving,
) -> None:
    """A client that polls gets section 6.6's document with 200."""
    async with serving() as served:
        execution = await served.client("brief").invoke({"text": "x"})

    assert execution.status is ExecutionStatus.TIMEOUT
    assert execution.error is not None
    assert execution.error.code == "EXECUTION_TIMEOUT"
    assert (
        execution.error.message
        == "Skill execution exceeded the configured timeout of 50ms"
    )
    assert execution.error.retry == RetryHint(5000, 1)  # the skill must not run twice


async def test_who_waits_for_a_timeout_is_answered_504(serving: Serving) -> None:
    """504 only for a synchronous wait; the body is the execution's document."""
    async with serving() as served:
        response = await served.invoke("brief", prefer="wait=30")

    assert response.status == 504
    assert read(response)["status"] == "timeout"
    assert read(response)["error"]["code"] == "EXECUTION_TIMEOUT"


async def test_the_deadline_is_the_smallest_of_three(serving: Serving) -> None:
    """The caller's, the descriptor's, the server's; the caller can only shorten it."""
    async with serving() as served:
        document = invocation("slow", timeout_ms=20)
        response = await served.ask(
            "POST", "/skills/slow/invoke", document, prefer="wait=30"
        )
        longer = invocation("brief", timeout_ms=60_000)
        other = await served.ask(
            "POST", "/skills/brief/invoke", longer, prefer="wait=30"
        )

    assert "20ms" in read(response)["error"]["message"]
    assert "50ms" in read(other)["error"]["message"]


async def test_what_waits_too_long_for_a_place_ends_without_running(
    one_server: Serving,
) -> None:
    """A separate limit ends what waits; the deadline's clock had not begun."""
    async with one_server(capacity=1, max_wait=0.02) as served:
        await served.invoke("slow", "first")
        await served.skills.started.wait()
        response = await served.invoke("echo", "second", prefer="wait=30")
        served.skills.gate.set()

    assert read(response)["status"] == "timeout"
    assert read(response)["error"]["details"] == {"started": False}
    assert served.skills.ran == ["first"]


async def test_a_higher_priority_goes_first(one_server: Serving) -> None:
    """``context.priority``: high before normal before low; else first come, first
    served.
    """
    async with one_server(capacity=1) as served:
        await served.invoke("slow", "first")
        await served.skills.started.wait()
        for text, priority in (
            ("l", "low"),
            ("n", "normal"),
            ("h", "high"),
            ("h2", "high"),
        ):
            document = invocation("echo", text, priority=priority)
            response = await served.ask("POST", "/skills/echo/invoke", document)
        last = await served.invoke("echo", "n2")
        served.skills.gate.set()
        for each in (response, last):
            await served.ask(
                "GET", f"/executions/{read(each)['execution_id']}", prefer="wait=30"
            )
        low = await served.ask("GET", "/metrics", key=KEY)
        while (
            b'status="running"} 0' not in low.body
            or b'status="accepted"} 0' not in low.body
        ):
            low = await served.ask("GET", "/metrics", key=KEY)
            await anyio.lowlevel.checkpoint()

    assert served.skills.ran == ["first", "h", "h2", "n", "n2", "l"]


async def test_the_same_key_is_the_same_execution(serving: Serving) -> None:
    """A lost 202 never runs twice."""
    async with serving() as served:
        first = await served.invoke(
            "echo", key=KEY, idempotency_key="k1", prefer="wait=30"
        )
        second = await served.invoke(
            "echo", key=KEY, idempotency_key="k1", prefer="wait=30"
        )

    assert read(first) == read(second)
    assert served.skills.ran == ["hi"]


async def test_the_same_key_with_another_body_is_refused(serving: Serving) -> None:
    """422, and nothing runs."""
    async with serving() as served:
        await served.invoke(
            "echo", "one", key=KEY, idempotency_key="k1", prefer="wait=30"
        )
        response = await served.invoke("echo", "two", key=KEY, idempotency_key="k1")

    assert response.status == 422
    assert read(response)["error"]["code"] == "IDEMPOTENCY_KEY_REUSED"
    assert served.skills.ran == ["one"]


async def test_a_key_is_the_callers_and_the_skills_own(serving: Serving) -> None:
    """Another caller, or another skill, with the same key is another execution."""
    async with serving() as served:
        responses = [
            await served.invoke("echo", key=KEY, idempotency_key="k1"),
            await served.invoke("echo", key=OTHER_KEY, idempotency_key="k1"),
            await served.invoke("locked", key=KEY, idempotency_key="k1"),
        ]

    assert len({read(response)["execution_id"] for response in responses}) == 3


async def test_the_caller_is_part_of_the_body(serving: Serving) -> None:
    """One key, sent with another caller in the body, is another request."""
    async with serving() as served:
        first = await served.invoke("echo", key=KEY, idempotency_key="k-1")
        document = {
            **invocation("echo"),
            "caller": {"id": "another", "type": "service"},
        }
        other = await served.ask(
            "POST", "/skills/echo/invoke", document, key=KEY, idempotency_key="k-1"
        )

    assert first.status == 202
    assert (other.status, read(other)["error"]["code"]) == (
        422,
        "IDEMPOTENCY_KEY_REUSED",
    )


@pytest.mark.parametrize("key", ["", "a b", "é", "x" * 256])
async def test_a_key_that_is_none_is_refused(serving: Serving, key: str) -> None:
    """1 to 255 visible characters."""
    async with serving() as served:
        response = await served.invoke("echo", idempotency_key=key)

    assert response.status == 400


async def test_a_running_execution_is_cancelled(serving: Serving) -> None:
    """DELETE on the status; a peer that knows ``cancelled`` sees it, any other sees
    ``failed``.
    """
    async with serving() as served:
        execution_id = read(await served.invoke("slow"))["execution_id"]
        await served.skills.started.wait()
        cancelled = await served.client("slow").cancel(execution_id)
        # The server that runs it may hear of it a moment later than the one that was
        # asked.
        plain = await served.ask("GET", f"/executions/{execution_id}", prefer="wait=30")
        again = await served.client("slow").cancel(execution_id)

    assert cancelled.status is ExecutionStatus.CANCELLED
    assert read(plain)["status"] == "failed"
    assert read(plain)["error"]["code"] == "EXECUTION_CANCELLED"
    assert again.status is ExecutionStatus.CANCELLED


async def test_an_execution_that_waits_is_cancelled_without_running(
    one_server: Serving,
) -> None:
    """It never had a place."""
    async with one_server(capacity=1) as served:
        await served.invoke("slow", "first")
        await served.skills.started.wait()
        waiting = read(await served.invoke("echo", "second"))["execution_id"]
        cancelled = await served.client("echo").cancel(waiting)
        served.skills.gate.set()

    assert cancelled.status is ExecutionStatus.CANCELLED
    assert served.skills.ran == ["first"]


async def test_a_completed_execution_stays_completed(serving: Serving) -> None:
    """Cancelling what has ended changes nothing."""
    async with serving() as served:
        done = await served.client("echo").invoke({"text": "x"})
        after = await served.client("echo").cancel(done.execution_id)

    assert after.status is ExecutionStatus.COMPLETED


async def test_a_cancelled_client_asks_the_server_to_stop(serving: Serving) -> None:
    """When the client stops waiting, the execution is cancelled."""
    async with serving() as served:
        async with anyio.create_task_group() as tasks:
            seen: list[Execution] = []

            async def call() -> None:
                await served.client("slow", wait_seconds=0).invoke(
                    {"text": "x"}, on_change=seen.append
                )

            tasks.start_soon(call)
            await served.skills.started.wait()
            tasks.cancel_scope.cancel()
        response = await served.ask("GET", f"/executions/{seen[0].execution_id}")

    assert read(response)["error"]["code"] == "EXECUTION_CANCELLED"


async def test_an_execution_is_resumed_by_another_client(serving: Serving) -> None:
    """After the client's own restart, its id is all that is needed."""
    async with serving() as served:
        execution_id = read(await served.invoke("slow"))["execution_id"]
        served.skills.gate.set()
        execution = await served.client("slow").resume(execution_id)

    assert execution.output == {"said": "hi"}


async def test_a_task_is_completed_from_outside(serving: Serving) -> None:
    """A person or another agent does it: accepted until then; the promise is
    checked.
    """
    async with serving() as served:
        execution_id = read(await served.invoke("chore"))["execution_id"]
        path = f"/executions/{execution_id}/complete"
        wrong = await served.ask("POST", path, {"output": {"no": 1}}, key=OPERATOR_KEY)
        other_caller = await served.ask(
            "POST", path, {"output": {"done": True}}, key=KEY
        )
        anonymous = await served.ask("POST", path, {"output": {"done": True}})
        right = await served.ask(
            "POST", path, {"output": {"done": True}}, key=OPERATOR_KEY
        )
        twice = await served.ask(
            "POST", path, {"output": {"done": True}}, key=OPERATOR_KEY
        )

    assert [
        wrong.status,
        other_caller.status,
        anonymous.status,
        right.status,
        twice.status,
    ] == [400, 403, 401, 200, 409]
    assert read(right)["output"] == {"done": True}
    assert served.skills.ran == []


async def test_of_two_who_complete_a_task_one_is_reported_so(serving: Serving) -> None:
    """The second worker learns that it came too late; its result does not replace the
    first.
    """
    async with serving() as served:
        execution_id = read(await served.invoke("chore", key=KEY))["execution_id"]
        answers = {}

        async def complete(who: str) -> None:
            path, document = (
                f"/executions/{execution_id}/complete",
                {"output": {"done": who}},
            )
            answers[who] = await served.ask("POST", path, document, key=OPERATOR_KEY)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(complete, "a")
            tasks.start_soon(complete, "b")
        final = read(await served.ask("GET", f"/executions/{execution_id}", key=KEY))

    assert sorted(answer.status for answer in answers.values()) == [200, 409]
    assert answers[final["output"]["done"]].status == 200


async def test_a_task_can_fail_and_be_cancelled(serving: Serving) -> None:
    """The worker may report a failure; the caller may cancel."""
    async with serving() as served:
        first, second = [
            read(await served.invoke("chore"))["execution_id"] for _ in range(2)
        ]
        error = {"error": {"code": "NO_TIME", "message": "Tomorrow"}}
        failed = await served.ask(
            "POST", f"/executions/{first}/complete", error, key=OPERATOR_KEY
        )
        cancelled = await served.client("chore").cancel(second)

    assert read(failed)["status"] == "failed"
    assert read(failed)["error"] == {"code": "NO_TIME", "message": "Tomorrow"}
    assert cancelled.status is ExecutionStatus.CANCELLED


# Who may see and do what


async def test_a_private_skill_is_absent_to_the_last_byte(serving: Serving) -> None:
    """Section 7: an unauthenticated caller gets the same answer for private and absent
    skills, at every address.
    """
    async with serving() as served:
        for method, suffix in (
            ("GET", ""),
            ("POST", "/invoke"),
            ("DELETE", ""),
            ("PUT", "/invoke"),
        ):
            for key in (None, "guessed"):
                document = invocation("hidden") if method == "POST" else None
                hidden = await served.ask(
                    method, f"/skills/hidden{suffix}", document, key=key
                )
                absent = await served.ask(
                    method, f"/skills/absent{suffix}", document, key=key
                )
                assert hidden == absent

        listed = read(await served.ask("GET", "/.well-known/skill-sharing"))
        described = await served.ask("GET", "/openapi.json")
        shown = read(await served.ask("GET", "/.well-known/skill-sharing", key=KEY))

    assert "hidden" not in [skill["id"] for skill in listed["skills"]]
    assert b"hidden" not in described.body
    assert "hidden" in [skill["id"] for skill in shown["skills"]]


async def test_the_listing_is_filtered_by_tags(one_server: Serving) -> None:
    """Those with one of the tags, in any case; and never what the caller may not
    see.
    """
    async with one_server() as served:
        tags = {"echo": ("Text", "demo"), "hidden": ("demo",)}
        for name, own in tags.items():
            published = served.service.skills[name]
            descriptor = replace(published.descriptor, tags=own)
            served.service.skills[name] = replace(published, descriptor=descriptor)

        async def listed(query: str, **options: Any) -> list[str]:
            document = read(
                await served.ask("GET", f"/.well-known/skill-sharing{query}", **options)
            )
            return sorted(skill["id"] for skill in document["skills"])

        assert await listed("?tag=demo") == ["echo"]
        assert await listed("?tag=demo", key=KEY) == ["echo", "hidden"]
        assert await listed("?tag=none&tag=text") == ["echo"]
        assert await listed("?tag=none") == []
        assert await listed("?other=demo") == await listed("")


async def test_a_restricted_skill_is_seen_by_all_and_called_with_a_key(
    serving: Serving,
) -> None:
    """Section 7; and 6.5's document says what is wanted."""
    async with serving() as served:
        seen = await served.ask("GET", "/skills/locked")
        refused = await served.invoke("locked")
        allowed = await served.invoke("locked", key=KEY)

    assert seen.status == 200
    assert refused.status == 401
    assert read(refused) == {
        "error": {
            "code": "AUTH_REQUIRED",
            "message": "Authentication is required to invoke this skill",
            "details": {"required_auth_type": "api_key"},
        }
    }
    assert "www-authenticate" in refused.headers
    assert allowed.status == 202


async def test_a_key_may_be_for_some_skills_alone(serving: Serving) -> None:
    """PERMISSION_DENIED 403."""
    async with serving() as served:
        allowed = await served.invoke("echo", key=NARROW_KEY)
        refused = await served.invoke("locked", key=NARROW_KEY)

    assert allowed.status == 202
    assert refused.status == 403
    assert read(refused)["error"]["code"] == "PERMISSION_DENIED"


async def test_a_wrong_key_is_refused_even_where_none_is_needed(
    serving: Serving,
) -> None:
    """Who shows a key means to be someone."""
    async with serving() as served:
        response = await served.invoke("echo", key="wrong")

    assert response.status == 401


async def test_anothers_execution_is_absent(serving: Serving) -> None:
    """The same bytes as for an id that never was; an operator sees it."""
    async with serving() as served:
        execution_id = read(await served.invoke("locked", key=KEY))["execution_id"]
        for method, suffix in (("GET", ""), ("GET", "/result"), ("DELETE", "")):
            theirs = await served.ask(
                method, f"/executions/{execution_id}{suffix}", key=OTHER_KEY
            )
            absent = await served.ask(
                method, f"/executions/exec-nothing{suffix}", key=OTHER_KEY
            )
            anonymous = await served.ask(method, f"/executions/{execution_id}{suffix}")
            assert theirs == absent == anonymous
            assert theirs.status == 404
        seen = await served.ask("GET", f"/executions/{execution_id}", key=OPERATOR_KEY)

    assert seen.status == 200


async def test_one_lists_ones_own_executions_page_by_page(serving: Serving) -> None:
    """The newest first, with a cursor; outputs are left out; an operator sees
    everyone's.
    """
    async with serving() as served:
        ids = [
            read(await served.invoke("echo", str(n), key=KEY, prefer="wait=30"))[
                "execution_id"
            ]
            for n in range(5)
        ]
        await served.invoke("echo", key=OTHER_KEY)
        pages = []
        path: str | None = "/executions?limit=2"
        while path is not None:
            page = read(await served.ask("GET", path, key=KEY))
            pages.append([each["execution_id"] for each in page["executions"]])
            assert all("output" not in each for each in page["executions"])
            path = (
                f"/executions?limit=2&cursor={page['next_cursor']}"
                if "next_cursor" in page
                else None
            )
        everyone = read(await served.ask("GET", "/executions?all=1", key=OPERATOR_KEY))
        anonymous = await served.ask("GET", "/executions")
        queries = (
            "limit=0",
            "limit=%EF%BC%91",
            "cursor=zz",
            "cursor=9999999999999.9999999999",
            "limit=201",
        )
        # Zeros in front must not hide digits at the end, and int() takes 4,300 digits
        # at most.
        queries += (
            "limit=0000002000",
            "limit=1" + "0" * 40,
            "limit=" + "0" * 5000,
            "limit=1&limit=2",
            "limit=",
        )
        bad = [
            (await served.ask("GET", f"/executions?{query}", key=KEY)).status
            for query in queries
        ]

    assert [len(page) for page in pages] == [2, 2, 1]
    assert [each for page in pages for each in page] == ids[::-1]
    assert len(everyone["executions"]) == 6
    assert (anonymous.status, bad) == (401, [400] * 10)


# What the wire looks like


async def test_bad_arguments_are_violations(serving: Serving) -> None:
    """Section 9: ``details.violations[{field, expected, actual}]``, and nothing is
    begun.
    """
    async with serving() as served:
        response = await served.invoke("echo", "")
        no_object = await served.ask(
            "POST", "/skills/echo/invoke", {"caller": {"id": "a", "type": "user"}}
        )

    document = read(response)
    assert response.status == 400
    assert document["error"]["code"] == "VALIDATION_ERROR"
    assert document["error"]["details"]["violations"][0]["field"] == "/inputs/text"
    assert {
        each["field"] for each in read(no_object)["error"]["details"]["violations"]
    } == {"/inputs"}
    assert served.skills.ran == []


async def test_a_malformed_argument_is_repaired_by_the_server_and_reported(
    serving: Serving,
) -> None:
    """The server's contract repairs as much as the local one."""
    async with serving() as served:
        response = await served.invoke("echo", 5, prefer="wait=30")

    assert read(response)["output"] == {"said": "5"}
    assert read(response)["metadata"]["repairs"][0]["path"] == "/text"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"[" * 200_000, "application/json"),
        (b'{"a": NaN}', "application/json"),
        (b'{"a": 1e999}', "application/json"),
        (b"\xff", "application/json"),
        ("{}".encode("utf-16"), "application/json"),
        (json.dumps(invocation("echo", "\ud800")).encode(), "application/json"),
        (
            json.dumps(invocation("echo", "\ud800"), ensure_ascii=False).encode(
                "utf-8", "surrogatepass"
            ),
            "application/json",
        ),
        (b"[]", "application/json"),
        (b"{}", "text/plain"),
    ],
)
async def test_a_body_that_is_not_a_request_is_refused(
    serving: Serving, body: bytes, kind: str
) -> None:
    """Every such body gets 400 with the envelope."""
    async with serving() as served:
        response = await served.ask(
            "POST", "/skills/echo/invoke", body, content_type=kind
        )

    assert response.status == 400
    assert read(response)["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"caller": {}},
        {"caller": {"id": "anonymous", "type": "service"}, "skill_id": "echo"},
    ],
)
async def test_the_caller_and_the_skill_have_defaults(
    serving: Serving, body: dict[str, Any]
) -> None:
    """The key says who calls, and the address says what; the same execution is begun."""
    async with serving() as served:
        response = await served.ask(
            "POST",
            "/skills/echo/invoke",
            {"inputs": {"text": "a"}, **body},
            prefer="wait=30",
        )

    assert read(response)["output"] == {"said": "a"}


async def test_another_skills_id_in_the_body_is_refused(serving: Serving) -> None:
    """The address and the body must mean the same skill."""
    async with serving() as served:
        response = await served.ask("POST", "/skills/echo/invoke", invocation("slow"))

    assert read(response)["error"]["details"]["violations"][0]["field"] == "/skill_id"


async def test_an_entity_tag_spares_what_is_known(serving: Serving) -> None:
    """ETag and If-None-Match for descriptors and executions."""
    async with serving() as served:
        first = await served.ask("GET", "/skills/echo")
        second = await served.ask(
            "GET", "/skills/echo", if_none_match=first.headers["etag"]
        )
        other = await served.ask("GET", "/skills/echo", if_none_match='"other"')

    assert (second.status, second.body) == (304, b"")
    assert other.status == 200


async def test_a_trace_goes_on(serving: Serving) -> None:
    """``traceparent`` becomes the trace id, and comes back with it."""
    async with serving() as served:
        parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
        response = await served.invoke("echo", traceparent=parent)

    assert (
        response.headers["traceparent"].split("-")[1]
        == "4bf92f3577b34da6a3ce929d0e0e4736"
    )


async def test_another_major_of_the_protocol_is_refused_by_the_server_too(
    serving: Serving,
) -> None:
    """VERSION_INCOMPATIBLE 422."""
    async with serving() as served:
        response = await served.invoke("echo", skill_protocol="2.0.0")

    assert response.status == 422
    assert (
        read(response)["error"]["details"]["consumer_supported_range"]
        == ">=1.0.0,<2.0.0"
    )


async def test_unknown_addresses_and_methods(serving: Serving) -> None:
    """404 and 405 in the envelope; 405 names what is allowed; HEAD is GET without a
    body.
    """
    async with serving() as served:
        missing = await served.ask("GET", "/nothing/here")
        method = await served.ask("PUT", "/skills/echo")
        head = await served.ask("HEAD", "/skills/echo")

    assert (missing.status, method.status, head.status) == (404, 405, 200)
    assert method.headers["allow"] == "GET, HEAD"
    assert head.body == b""


async def test_discovery_follows_section_5(serving: Serving) -> None:
    """``{protocol, provider, skills[...]}`` with the fields that the protocol document
    lists.
    """
    async with serving() as served:
        document = read(await served.ask("GET", "/.well-known/skill-sharing"))

    assert document["protocol"] == {"version": "1.0.0"}
    echo = next(skill for skill in document["skills"] if skill["id"] == "echo")
    assert set(echo) == {
        "id",
        "name",
        "capability_type",
        "description",
        "descriptor_url",
        "access",
        "version",
    }
    assert echo["descriptor_url"].endswith("/skills/echo")


async def test_an_expired_result_is_gone(serving: Serving) -> None:
    """410 after ``timestamps.expires_at``."""
    async with serving(kept_for=-1) as served:
        execution_id = read(
            await served.invoke("echo", prefer="wait=30", idempotency_key="k")
        )["execution_id"]
        response = await served.ask("GET", f"/executions/{execution_id}")
        again = await served.invoke("echo", idempotency_key="k")

    assert response.status == 410
    assert read(response)["error"]["code"] == "EXECUTION_EXPIRED"
    assert again.status == 410


async def test_a_flood_is_reported_when_to_come_again(one_server: Serving) -> None:
    """429 with Retry-After for each caller on its own; and guessing keys is slowed
    down.
    """
    from skillruntime.server import Limits

    limits = Limits(invocations_per_minute=2, failed_logins_per_minute=3)
    async with one_server(limits=limits) as served:
        flood = [(await served.invoke("echo", key=KEY)).status for _ in range(4)]
        other = await served.invoke("echo", key=OTHER_KEY)
        guesses = [await served.invoke("echo", key=f"guess-{n}") for n in range(5)]

    assert flood == [202, 202, 429, 429]
    assert other.status == 202
    assert [response.status for response in guesses] == [401, 401, 401, 429, 429]
    assert int(guesses[-1].headers["retry-after"]) > 0


async def test_health_readiness_and_metrics(one_server: Serving) -> None:
    """Health is public for monitoring; metrics require authentication."""
    async with one_server() as served:
        await served.invoke("echo", prefer="wait=30")
        health = await served.ask("GET", "/health")
        refused = await served.ask("GET", "/metrics")
        metrics = await served.ask("GET", "/metrics", key=KEY)
        served.service.is_ready = False
        served.transport = served.service.handle  # a server on a socket ends soon
        ready = await served.ask("GET", "/ready")
        late = await served.invoke("echo")

    assert (health.status, refused.status, ready.status, late.status) == (
        200,
        401,
        503,
        503,
    )
    assert b'skillruntime_executions_accepted_total{skill="echo"} 1' in metrics.body


async def test_the_access_log_holds_no_secret(
    one_server: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    """One line of JSON a request: caller, action, duration; never a key, an input or an
    output.
    """
    with caplog.at_level("INFO", logger="skillruntime.access"):
        async with one_server() as served:
            await served.invoke("echo", "my-private-words", key=KEY, prefer="wait=30")

    line = caplog.records[-1].getMessage()
    assert (
        '"caller": "ann"' in line
        and '"skill": "echo"' in line
        and '"status": 200' in line
    )
    assert KEY not in line and "my-private-words" not in line


async def test_a_lost_202_runs_once(serving: Serving) -> None:
    """The server took it, the answer was lost, the client sends it again with the same
    key.
    """
    async with serving() as served:
        lost = 0

        async def lossy(request: WireRequest) -> WireResponse:
            nonlocal lost
            response = await served.service.handle(request)
            if request.method == "POST" and lost < 2:
                lost += 1
                return WireResponse(502)
            return response

        served.transport = lossy
        client = served.client("locked", key=KEY)
        execution = await client.invoke({"text": "once"})

    assert execution.output == {"said": "once"}
    assert served.skills.ran == ["once"]


async def test_wrong_credentials_are_an_error_without_the_key(serving: Serving) -> None:
    """An error never contains the key."""
    async with serving() as served:
        with pytest.raises(RemoteError) as raised:
            await served.client("locked", key="my-wrong-key").invoke({"text": "x"})

    assert raised.value.document.code == "AUTH_REQUIRED"
    assert "my-wrong-key" not in repr(raised.value) + str(raised.value.to_errors())


@pytest.mark.parametrize("is_coroutine", [True, False])
async def test_what_custom_credentials_began_is_followed_to_its_end(
    is_coroutine: bool,
) -> None:
    """A poll has no body for them, so its id is enough; the host's authenticator may
    also be a plain function.
    """

    def recognize(
        request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        return Principal("holder") if credentials == {"ticket": "t-1"} else None

    async def authenticate(
        request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        return recognize(request, credentials)

    skills = Skills()
    runtime, served_skills = skills.runtime()
    async with memory_executions(SkillWork(runtime, served_skills)) as executions:
        own = authenticate if is_coroutine else recognize
        service = SkillService(
            served_skills, executions, authenticate=any_of([KeyRing(KEYS), own])
        )
        descriptor = replace(
            service.skills["hidden"].descriptor, auth=AuthConfig(AuthType.CUSTOM)
        )
        credentials = CustomCredentials(lambda auth: {"ticket": "t-1"})
        client = RemoteClient(
            descriptor, credentials, service.handle, wait_seconds=0, jitter=lambda: 0.0
        )
        execution = await client.invoke({"text": "x"})
        # A key can be shown in a header at each poll, so one that was in the body opens
        # nothing to others.
        document = invocation("hidden")
        document["caller"]["credentials"] = {"api_key": KEY}
        served = Served(service, skills, service.handle)
        with_key = read(await served.ask("POST", "/skills/hidden/invoke", document))
        seen = [
            (
                await served.ask(
                    "GET", f"/executions/{with_key['execution_id']}", key=key
                )
            ).status
            for key in (None, KEY)
        ]

    assert execution.status is ExecutionStatus.COMPLETED
    assert seen == [404, 200]


async def test_an_authenticator_that_returns_something_else_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The caller gets a 500 without details; the host's log says what is wrong."""
    skills = Skills()
    runtime, served_skills = skills.runtime()
    async with memory_executions(SkillWork(runtime, served_skills)) as executions:
        service = SkillService(
            served_skills, executions, authenticate=lambda request, credentials: True
        )  # type: ignore[arg-type, return-value]
        response = await Served(service, skills, service.handle).invoke("echo")

    assert response.status == 500
    assert "The authenticator must return a Principal or None, not bool" in caplog.text


async def test_custom_credentials_in_the_body_open_a_private_skill() -> None:
    """6.3's ``caller.credentials``, read by the host's own authenticator; a caller with
    wrong ones sees nothing.
    """

    async def authenticate(
        request: WireRequest, credentials: Mapping[str, Any] | None
    ) -> Principal | None:
        if credentials is None:
            return None
        if credentials.get("ticket") != "t-1":
            raise BadCredentialsError
        return Principal("ticket-holder")

    skills = Skills()
    runtime, served_skills = skills.runtime()
    async with memory_executions(SkillWork(runtime, served_skills)) as executions:
        service = SkillService(served_skills, executions, authenticate=authenticate)
        served = Served(service, skills, service.handle)
        document = invocation("hidden")
        document["caller"]["credentials"] = {"ticket": "t-1"}
        allowed = await served.ask("POST", "/skills/hidden/invoke", document)
        document["caller"]["credentials"] = {"ticket": "t-2"}
        refused = await served.ask("POST", "/skills/hidden/invoke", document)
        absent = await served.ask("POST", "/skills/absent/invoke", document)
        found = await executions.get(read(allowed)["execution_id"])

    assert allowed.status == 202
    assert refused == absent and refused.status == 404
    assert found is not None and "t-1" not in str(found[0].to_dict())
