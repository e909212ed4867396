"""What a session spends and may spend: the ledger's wiring in
`skillruntime/runtime/session.py`.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.contract import Contract
from skillruntime.errors import ResourceNotFoundError, TokenLimitError
from skillruntime.runtime import CallRecord, SkillRuntime
from skillruntime.tokens import TokenLimits
from tests import needs

WriteSkill = Callable[..., SkillCatalog]


def echo(runtime: SkillRuntime, result: Any) -> list[dict[str, Any]]:
    """Register ``echo``, which answers *result*, and return the list of its calls."""
    calls: list[dict[str, Any]] = []

    @runtime.implements("echo", contract=Contract.from_dict({}))
    def run(arguments: dict[str, Any]) -> Any:
        calls.append(arguments)
        return result

    return calls


@pytest.mark.processes
def test_every_text_is_recorded_by_tier(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """Catalog, body, resource, result, error, retry and schema, each with its name."""
    session = SkillRuntime(write_skill("print(1)")).session()
    (tmp_path / "skills" / "sample" / "rules.md").write_text("Count every space.")

    session.render_catalog()
    session.activate("sample")
    session.read_resource("sample", "rules.md")
    session.admit_schema("sample", "{}")
    session.call_sync("sample", "nonsense {")
    session.call_sync("sample", {})

    tiers = session.ledger.to_dict()["tiers"]
    assert {tier: list(spent["by_name"]) for tier, spent in tiers.items()} == {
        "catalog": ["catalog"],
        "body": ["sample"],
        "resource": ["sample/rules.md"],
        "schema": ["sample"],
        "result": ["sample"],
        "error": ["sample"],
        "retry": ["sample"],
    }
    needs.package("tiktoken")
    assert tiers["resource"]["tokens"] == 20  # 4 of the file, the others of its frame


def test_without_limits_nothing_is_counted_until_somebody_asks(
    write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call does not load a tokenizer unless tokens are asked for."""
    runtime = SkillRuntime(write_skill(""))
    echo(runtime, "x")
    session = runtime.session()
    with monkeypatch.context() as patched:
        patched.setattr("skillruntime.tokens.budget.count", None)

        session.activate("sample")
        session.call_sync("echo", {})

    assert session.ledger.spent("result") > 0


def test_a_long_result_is_paged_and_read_on_to_its_end() -> None:
    """The pages put together are the result; each is within its limit; the last has no
    handle.
    """
    text = "".join(f"Line number {number}.\n" for number in range(200))
    runtime = SkillRuntime()
    echo(runtime, text)
    session = runtime.session(limits=TokenLimits(page_tokens=200))

    response = session.call_sync("echo", {})
    shown, handle = str(response.data), (response.metadata or {})["read_on"]
    parts = [shown.split("\n[cut: ")[0]]
    while "\n[cut: " in shown:
        assert session.ledger.count(shown) <= 200
        handle = shown.rsplit("handle='", 1)[1].split("'")[0]
        shown = session.read_on(handle)
        parts.append(shown.split("\n[cut: ")[0])

    assert response.status == "success"
    assert "".join(parts) == text
    with pytest.raises(ResourceNotFoundError):
        session.read_on("result9:1")


def test_nothing_is_run_whose_result_could_not_be_returned() -> None:
    """With no token left the call is refused before it runs, with a next step."""
    runtime = SkillRuntime()
    calls = echo(runtime, "word " * 12)
    session = runtime.session(limits=TokenLimits(total_tokens=60))

    answers = [session.call_sync("echo", {}) for _ in range(6)]

    refused = answers[-1]
    assert len(calls) == 2
    assert [error.code for error in refused.errors or []] == ["TOKEN_LIMIT_EXCEEDED"]
    assert "Answer with the results you have" in (
        (refused.errors or [])[0].suggested_action or ""
    )


def test_a_body_that_does_not_fit_is_refused_and_not_active(
    write_skill: WriteSkill,
) -> None:
    """Less than a page is left: what was refused is not counted as loaded."""
    session = SkillRuntime(write_skill("", body="word " * 500)).session(
        limits=TokenLimits(body_tokens=40)
    )

    with pytest.raises(TokenLimitError) as caught:
        session.activate("sample")

    assert "already active" in (caught.value.suggested_action or "")
    assert not session.active


@pytest.mark.parametrize(
    ("limit", "budget", "included"),
    [
        (16, 1_000, ()),
        (16, None, ()),
        (None, 16, ()),
        (1_000, 16, ()),
        (1_000, None, ("sample",)),
        (None, None, ("sample",)),
    ],
)
def test_the_catalog_is_shortened_to_what_is_left(
    write_skill: WriteSkill,
    limit: int | None,
    budget: int | None,
    included: tuple[str, ...],
) -> None:
    """Its limit and the budget asked for: the smaller counts."""
    session = SkillRuntime(write_skill("")).session(
        limits=TokenLimits(catalog_tokens=limit)
    )

    rendered = session.render_catalog(budget)

    smaller = min(limit or 1_000, budget or 1_000)
    assert rendered.tokens <= smaller
    assert rendered.included == included


def test_an_envelope_says_what_was_spent_when_asked() -> None:
    """``metadata.tokens``: the total, by tier, and what is left; a warning before the
    limit.
    """
    runtime = SkillRuntime()
    echo(runtime, "word " * 20)
    session = runtime.session(limits=TokenLimits(total_tokens=70), report_tokens=True)

    metadata = anyio.run(session.call, "echo", {}).metadata or {}

    assert metadata["tokens"]["total"] == metadata["tokens"]["result"]
    assert metadata["tokens"]["left"] == 70 - metadata["tokens"]["total"]
    assert (session.call_sync("echo", {}).metadata or {}).get("tokens")
    assert session.ledger.warnings


def test_a_conversation_resumed_elsewhere_knows_what_it_shows(
    write_skill: WriteSkill,
) -> None:
    """By digest: an unchanged skill is one line, a changed one is shown again, a
    removed one is not active.
    """
    from skillruntime.runtime.presentation.activation import fingerprint

    runtime = SkillRuntime(write_skill(""))
    session = runtime.session()

    session.resume({"sample": fingerprint(runtime.open_skill("sample"))})
    known = session.activate("sample")
    session.resume({"sample": "another"})
    changed = session.activate("sample")
    session.resume({})

    assert "already active" in known
    assert "Do it." in changed
    assert not session.active


@pytest.mark.processes
def test_an_observer_receives_each_call_load_and_read(
    write_skill: WriteSkill, tmp_path: Path
) -> None:
    """A frozen record each, refusals too; an observer that raises changes nothing."""
    records: list[CallRecord] = []

    def broken(record: CallRecord) -> None:
        raise RuntimeError("mine")

    runtime = SkillRuntime(write_skill("print(1)"), on_call=[broken, records.append])
    session = runtime.session()
    (tmp_path / "skills" / "sample" / "a.md").write_text("A")

    session.activate("sample")
    session.read_resource("sample", "a.md")
    with pytest.raises(ResourceNotFoundError):
        session.read_resource("sample", "b.md")
    anyio.run(session.call, "sample", '{"text": "secret",}')
    session.call_sync("sample", {})

    assert [(r.operation.value, r.name, r.path, r.status) for r in records] == [
        ("load_skill", "sample", None, "success"),
        ("read_resource", "sample", "a.md", "success"),
        ("read_resource", "sample", "b.md", "failed"),
        ("execute_tool", "sample", None, "success"),
        ("execute_tool", "sample", None, "success"),
    ]
    assert records[2].error_codes == ("FETCH_FAILED",)
    assert records[3].repairs == 1
    assert {record.session_id for record in records} == {session.id}
    assert "secret" not in repr(records)
    assert json.loads(records[4].response.to_json())["data"] == 1


def test_of_a_long_result_only_a_page_is_counted_in_the_call(
    write_skill: WriteSkill,
) -> None:
    """Counting ten megabytes takes seconds; what a model is not shown is not spent."""
    counted: list[int] = []

    def count(text: str) -> int:
        counted.append(len(text))
        return len(text) // 4

    runtime = SkillRuntime(write_skill("print(1)"))
    echo(runtime, "x" * 3_000_000)
    session = runtime.session(model=count)

    response = session.call_sync("echo", {})

    assert len(response.data) == 3_000_000
    assert max(counted) <= 100_000
    assert session.ledger.spent("result", "echo") <= 8_000


@pytest.mark.parametrize(
    "options",
    [{"limits": TokenLimits(total_tokens=100_000)}, {"report_tokens": True}],
    ids=str,
)
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_long_result_is_not_counted_on_the_event_loop(
    options: dict[str, Any], backend: str
) -> None:
    """Not with limits and not with a report either: other tasks run meanwhile."""
    runtime = SkillRuntime()
    echo(runtime, "word " * 20_000)
    counting: list[int] = []
    session = runtime.session(**options)
    count = session.ledger.count
    session.ledger.count = lambda text: (
        counting.append(threading.get_ident()) or count(text)
    )  # type: ignore[method-assign, func-returns-value]

    async def run() -> int:
        await session.call("echo", {})
        return threading.get_ident()

    loop = anyio.run(run, backend=backend)

    assert counting
    assert loop not in counting
