from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillruntime.errors import ErrorCode, ResourceNotFoundError
from skillruntime.tokens import TokenLedger, TokenLimits, count
from skillruntime.tokens.budget import Tier
from tests import needs

pytest.importorskip("tiktoken", reason=needs.to_install("tiktoken"))

LONG = "\n\n".join(
    f"Paragraph {number} says a little more about the matter at hand."
    for number in range(100)
)


def test_every_tier_is_kept_by_name() -> None:
    """What was spent can be asked for by tier and by name, and the total is the sum."""
    ledger = TokenLedger()

    ledger.admit(Tier.CATALOG, "catalog", "one two three")
    ledger.admit(Tier.BODY, "pdf", "one two")
    ledger.admit(Tier.BODY, "digest", "one")
    ledger.admit(Tier.RESOURCE, "pdf/references/forms.md", "one two three four")

    assert (
        ledger.spent("catalog"),
        ledger.spent("body"),
        ledger.spent("body", "pdf"),
    ) == (3, 3, 2)
    assert ledger.total_tokens == 10
    assert ledger.summary() == {"total": 10, "catalog": 3, "body": 3, "resource": 4}


def test_without_limits_nothing_is_cut() -> None:
    """A ledger without limits only counts."""
    admitted = TokenLedger().admit("result", "digest", LONG)

    assert (admitted.text, admitted.handle, admitted.ok) == (LONG, None, True)


def test_a_long_result_is_cut_at_a_paragraph_with_a_handle_to_read_on() -> None:
    """Nothing is cut silently: the text says what is left and how to get it, and the
    parts make the whole.
    """
    ledger = TokenLedger(TokenLimits(page_tokens=300))

    admitted = ledger.admit("result", "digest", LONG)

    assert admitted.handle is not None
    assert re.search(
        r"\n\[cut: [\d,]+ of 1,300 tokens left; to read on:"
        r" read_on\(handle='result-[0-9a-f]{12}:\d+'\)\]$",
        admitted.text,
    )
    shown = admitted.text.rpartition("\n[cut: ")[0]
    while admitted.handle:
        assert admitted.tokens <= 300
        admitted = ledger.read_on(admitted.handle)
        shown += (
            admitted.text.rpartition("\n[cut: ")[0]
            if admitted.handle
            else admitted.text
        )
    assert shown == LONG


def test_the_way_to_read_on_is_the_hosts_own_tool() -> None:
    """The notice names the call that the host offers."""
    ledger = TokenLedger(
        TokenLimits(page_tokens=100), read_on='read_resource(path="{handle}")'
    )

    assert 'read_resource(path="body-' in ledger.admit("body", "pdf", LONG).text


@pytest.mark.parametrize(
    "handle", ["", "result1", "result9:5", "result1:x", "nonsense:12"]
)
def test_an_unknown_handle_says_what_to_do(handle: str) -> None:
    """An unknown handle is an error with a next step."""
    ledger = TokenLedger(TokenLimits(page_tokens=100))
    ledger.admit("result", "digest", LONG)

    with pytest.raises(ResourceNotFoundError) as caught:
        ledger.read_on(handle)

    assert caught.value.suggested_action is not None


def test_only_so_many_cut_texts_are_kept() -> None:
    """The 33rd cut text pushes out the first."""
    ledger = TokenLedger(TokenLimits(page_tokens=100))

    handles = [ledger.admit("result", "digest", LONG).handle or "" for _ in range(33)]

    with pytest.raises(ResourceNotFoundError):
        ledger.read_on(handles[0])
    assert ledger.read_on(handles[1]).ok


def test_a_spent_tier_refuses_with_a_next_step() -> None:
    """When a tier has fewer tokens left than a page needs, the text is refused and
    nothing is spent.
    """
    ledger = TokenLedger(TokenLimits(body_tokens=100))
    ledger.admit("body", "first", "word " * 90)
    before = ledger.total_tokens

    admitted = ledger.admit("body", "second", "word " * 90)

    assert (admitted.ok, admitted.text, ledger.total_tokens) == (False, "", before)
    assert admitted.refusal is not None
    assert admitted.refusal.code is ErrorCode.TOKEN_LIMIT_EXCEEDED
    assert admitted.refusal.details == {
        "limit": "body_tokens",
        "limit_tokens": 100,
        "spent_tokens": before,
        "needed_tokens": 91,
    }
    assert "already active" in (admitted.refusal.suggested_action or "")


def test_a_page_that_not_even_its_notice_fits_is_refused() -> None:
    """Also where no tier has a limit: the limit of a page is the one that is named."""
    admitted = TokenLedger(TokenLimits(page_tokens=64), model=len).admit(
        "body", "x", "a" * 1000
    )

    assert admitted.refusal is not None
    assert admitted.refusal.details is not None
    assert admitted.refusal.details["limit"] == "page_tokens"


def test_a_refusal_is_short() -> None:
    """What the model reads of a refusal is at most 80 tokens."""
    ledger = TokenLedger(TokenLimits(total_tokens=10))

    refusal = ledger.admit(
        "resource", "pdf-processing/references/forms.md", LONG
    ).refusal

    assert refusal is not None
    assert count(f"{refusal.message}. {refusal.suggested_action}").tokens <= 80


def test_a_catalog_above_its_limit_is_refused_with_the_tokens_left() -> None:
    """A catalog is not paged: the refusal says what is left, and the caller renders a
    shorter one.
    """
    ledger = TokenLedger(TokenLimits(catalog_tokens=500))

    admitted = ledger.admit("catalog", "catalog", LONG)

    assert not admitted.ok
    assert ledger.remaining("catalog") == 500


def test_errors_are_shown_past_every_limit() -> None:
    """A model always receives its errors, and they are counted."""
    ledger = TokenLedger(TokenLimits(total_tokens=10))

    admitted = ledger.admit("error", "digest", LONG)

    assert admitted.text == LONG
    assert ledger.remaining("result") == 0


def test_a_warning_comes_once_before_the_limit() -> None:
    """Crossing 80 % of a limit warns, with the figures; going on does not warn
    again.
    """
    ledger = TokenLedger(TokenLimits(body_tokens=100))

    first = ledger.admit("body", "a", "word " * 60)
    second = ledger.admit("body", "b", "word " * 20)
    third = ledger.admit("body", "c", "word")

    assert first.warnings == third.warnings == ()
    assert second.warnings == ("82 of 100 tokens spent (body_tokens)",)
    assert ledger.warnings == ["82 of 100 tokens spent (body_tokens)"]


def test_a_retry_is_what_follows_a_failed_call() -> None:
    """The arguments of a call that repeats a failed one are the price of the error,
    next to the error itself.
    """
    ledger = TokenLedger()

    ledger.record_call(
        "digest", '{"topics": "AI"}', "topics must be an array", ok=False
    )
    ledger.record_call("digest", '{"topics": ["AI"]}', "done", ok=True)
    ledger.record_call("digest", '{"topics": ["AI"]}', "done", ok=True)

    assert (ledger.spent("error"), ledger.spent("retry"), ledger.spent("result")) == (
        5,
        7,
        2,
    )


def test_what_is_sent_again_with_every_request_adds_up() -> None:
    """A text costs once when it enters and again with every request that carries it."""
    ledger = TokenLedger()

    ledger.admit("catalog", "catalog", "one two three")
    ledger.note_request()
    ledger.admit("body", "pdf", "one two")
    ledger.note_request()

    assert (ledger.requests, ledger.total_tokens, ledger.carried_tokens) == (2, 5, 8)


def test_an_estimating_ledger_says_so() -> None:
    """The ledger of a model without a public tokenizer names its method in its JSON."""
    ledger = TokenLedger(TokenLimits(total_tokens=1000), model="claude-sonnet-4-5")
    ledger.admit("body", "pdf", "one two three four five")

    document = json.loads(json.dumps(ledger.to_dict()))

    assert document["unit"] == "tokens"
    assert (document["exact"], document["total"]) == (False, 6)
    assert document["limits"] == {"total_tokens": 1000}
    assert document["tiers"]["body"] == {"tokens": 6, "times": 1, "by_name": {"pdf": 6}}


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["catalog", "body", "resource", "schema", "result"]),
            st.integers(0, 400),
        ),
        max_size=20,
    ),
    st.integers(0, 600),
)
def test_no_limit_is_ever_passed(texts: list[tuple[str, int]], limit: int) -> None:
    """Whatever is admitted, bodies, resources and everything together stay within their
    limits.
    """
    ledger = TokenLedger(
        TokenLimits(
            body_tokens=limit,
            resource_tokens=limit // 2,
            total_tokens=limit * 2,
            page_tokens=150,
        )
    )

    for tier, words in texts:
        admitted = ledger.admit(tier, "skill", "word and. " * words)
        assert admitted.ok or admitted.refusal

    assert ledger.spent("body") <= limit
    assert ledger.spent("resource") <= limit // 2
    assert ledger.total_tokens <= limit * 2
