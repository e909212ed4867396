"""Count the tokens that a conversation has spent on skills, by tier, and those that it
may still spend.

Law: no text is truncated or refused silently; a truncated text carries a handle to read
on, a refusal names the next step.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from skillruntime.errors import ErrorCode, ResourceNotFoundError, SkillError
from skillruntime.tokens.counter import Model, count
from skillruntime.tokens.pages import page

__all__ = ["Admitted", "Tier", "TokenLedger", "TokenLimits"]


class Tier(StrEnum):
    """The purpose of a token: the format's three tiers, then those that calling a skill
    adds.
    """

    CATALOG = "catalog"
    BODY = "body"
    RESOURCE = "resource"
    SCHEMA = "schema"
    RESULT = "result"
    ERROR = "error"
    RETRY = "retry"


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """How many tokens a conversation may spend; None means without limit.

    ``catalog_tokens``, ``body_tokens`` and ``resource_tokens`` are for all texts of
    that tier together, ``total_tokens`` for everything, ``page_tokens`` for one body,
    resource or result at a time (at least 64), ``result_page_tokens`` for one page of a
    result. At the share *warn_at* of a limit there is one warning.
    """

    catalog_tokens: int | None = None
    body_tokens: int | None = None
    resource_tokens: int | None = None
    total_tokens: int | None = None
    page_tokens: int | None = None
    result_page_tokens: int | None = 8_000
    warn_at: float = 0.8

    def __post_init__(self) -> None:
        for name in (*_LIMITS, "result_page_tokens"):
            limit = getattr(self, name)
            if limit is not None and not _is_number_of_tokens(limit):
                raise ValueError(
                    f"{name} is a number of tokens, 0 or more, or None for no limit; "
                    f"got {limit!r:.80}"
                )


def _is_number_of_tokens(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int):
        return False
    return value >= 0


@dataclass(frozen=True, slots=True)
class Admitted:
    """A text in the form that may be shown to the model, with its tokens.

    *handle* reads on if *text* is only the first part; *refusal* replaces a text that
    may not be shown; *warnings* are those that this text caused.
    """

    text: str
    tokens: int
    handle: str | None = None
    refusal: SkillError | None = None
    warnings: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there is something to show, whole or in part."""
        return self.refusal is None


class TokenLedger:
    """The tokens that one conversation spent on skills; only its session writes to it.

    At a limit, the caller renders a shorter catalog (``remaining``), a body, resource
    or result is divided into pages, and a tool's schema is refused. Errors and retries
    are always shown, and counted. A page has at least ``smallest_page`` tokens: with
    fewer left, the text is refused, and the refusal says what to do instead.

    >>> ledger = TokenLedger(TokenLimits(total_tokens=100))
    >>> ledger.admit("body", "pdf-processing", "Use pdfplumber.").tokens
    5
    >>> ledger.total_tokens, ledger.remaining("body")
    (5, 95)
    """

    smallest_page = 64
    _held_texts = 32

    def __init__(
        self,
        limits: TokenLimits | None = None,
        *,
        model: Model = "gpt-4o",
        read_on: str = "read_on(handle={handle!r})",
    ) -> None:
        """Start with nothing spent. *read_on* is the call with which the model reads
        the rest of a text.
        """
        self.limits: TokenLimits = limits or TokenLimits()
        self.model = model
        self.warnings: list[str] = []
        self.requests: int = 0
        self.carried_tokens: int = 0
        self._read_on = read_on
        self._spent: dict[Tier, dict[str, int]] = {tier: {} for tier in Tier}
        self._times: dict[Tier, int] = dict.fromkeys(Tier, 0)
        self._elsewhere: dict[Tier, int] = dict.fromkeys(Tier, 0)
        self._taken: dict[Tier, int] = dict.fromkeys(Tier, 0)
        self._failed: set[str] = set()
        self._held: OrderedDict[str, tuple[Tier, str, str]] = OrderedDict()

    def count(self, text: str) -> int:
        """Return the tokens of *text* for this conversation's model; pass this method
        to ``catalog.render``.
        """
        return count(text, self.model).tokens

    @property
    def total_tokens(self) -> int:
        """The tokens spent so far, each text once."""
        return sum(self.spent(tier) for tier in Tier)

    def spent(self, tier: Tier | str, name: str | None = None) -> int:
        """Return the tokens spent on *tier*, also in other processes, or those that
        this ledger recorded for *name* in it.
        """
        # By name, so that a report shows which skill is expensive.
        tier = Tier(tier)
        by_name = self._spent[tier]
        if name is None:
            return sum(by_name.values()) + self._elsewhere[tier]
        return by_name.get(name, 0)

    def remaining(self, tier: Tier | str) -> int | None:
        """Return how many tokens *tier* may still take, at least 0; ``None`` without a
        limit.
        """
        left = [limit - used for _, limit, used in self._limits_of(Tier(tier))]
        if not left:
            return None
        return max(min(left), 0)

    def page_tokens(self, tier: Tier) -> int | None:
        """Return the most tokens that one text of *tier* shows at a time; ``None``
        without a limit.
        """
        limits: list[int | None] = []
        if tier in _PAGED:
            limits.append(self.limits.page_tokens)
        if tier is Tier.RESULT:
            limits.append(self.limits.result_page_tokens)
        stated = [limit for limit in limits if limit is not None]
        if not stated:
            return None
        # A page smaller than its own notice would make no progress.
        return max(min(stated), self.smallest_page)

    def admit(self, tier: Tier | str, name: str, text: str) -> Admitted:
        """Record *text* of *name* and return it in the form that may be shown:
        complete, its first page, or refused.
        """
        tier = Tier(tier)
        return self._admit(tier, name, text, 0, handle=None)

    def read_on(self, handle: str) -> Admitted:
        """Return the next part of a truncated text; *handle* came with the previous
        part.

        Raises:
            ResourceNotFoundError: the handle is unknown, or its text is no longer kept
                (the last 32 texts are kept).
        """
        key, _, offset = handle.rpartition(":")
        if not self.has_page(handle):
            raise ResourceNotFoundError(
                f"There is no text to continue at {handle[:40]!r}",
                suggested_action="Call the skill again, or read the resource again "
                "from its start",
            )
        # The text is in use again, so it becomes the most recent one.
        self._held.move_to_end(key)
        tier, name, text = self._held[key]
        return self._admit(tier, name, text, int(offset), handle=key)

    def has_page(self, handle: str) -> bool:
        """Return whether `read_on` knows *handle*."""
        key, _, offset = handle.rpartition(":")
        return key in self._held and offset.isdecimal()

    def record_call(
        self, name: str, arguments: str, answer: str, *, ok: bool
    ) -> Admitted:
        """Record one call: its *answer*, and its *arguments* too if it repeats a call
        of *name* that failed.

        The arguments of a first call are not counted: the model writes them with any
        tool.
        """
        # The first attempt costs the same with any tool; the second is the cost of the
        # malformed call.
        if name in self._failed:
            self._spend(Tier.RETRY, name, self.count(arguments))
        if ok:
            self._failed.discard(name)
            return self.admit(Tier.RESULT, name, answer)
        self._failed.add(name)
        return self.admit(Tier.ERROR, name, answer)

    def take_new(self) -> dict[str, int]:
        """Return the tokens spent in this process since the last call of this method,
        by tier; tiers without new tokens are left out.

        A host that keeps the sum elsewhere continues with `continue_from` in any
        process.
        """
        new: dict[str, int] = {}
        for tier in Tier:
            here = sum(self._spent[tier].values())
            if here > self._taken[tier]:
                new[tier.value] = here - self._taken[tier]
                self._taken[tier] = here
        return new

    def continue_from(self, spent: Mapping[str, int]) -> None:
        """Count the tokens that other processes spent: *spent* is the sum, by tier, of
        the results of `take_new` in all processes.

        It may be older than the last result of `take_new` here.

        >>> ledger = TokenLedger(TokenLimits(total_tokens=100))
        >>> ledger.continue_from({"body": 60, "result": 15})
        >>> ledger.remaining("body"), ledger.take_new()
        (25, {})
        """
        for tier in Tier:
            others = spent.get(tier.value, 0) - self._taken[tier]
            # An older sum does not have all of ours, so that the difference is too low.
            self._elsewhere[tier] = max(self._elsewhere[tier], others)

    def note_request(self) -> None:
        """Count one more request: it carries every text so far again, which
        ``carried_tokens`` adds up.
        """
        self.requests += 1
        self.carried_tokens += self.total_tokens

    def summary(self) -> dict[str, Any]:
        """Return the value of ``envelope.metadata.tokens``: the total and the tiers
        that are not empty.
        """
        document: dict[str, Any] = {"total": self.total_tokens}
        for tier in Tier:
            spent = self.spent(tier)
            if spent:
                document[tier.value] = spent
        left = self.remaining(Tier.ERROR)
        if left is not None:
            document["left"] = left
        return document

    def to_dict(self) -> dict[str, Any]:
        """Return the whole ledger as a JSON object: every tier by name, the limits, the
        warnings given. Tokens that other processes spent are in the tiers, without a
        name.
        """
        method = count("", self.model)
        tiers: dict[str, Any] = {}
        for tier in Tier:
            tiers[tier.value] = {
                "tokens": self.spent(tier),
                "times": self._times[tier],
                "by_name": dict(self._spent[tier]),
            }
        limits: dict[str, int] = {}
        for name in _LIMITS:
            limit = getattr(self.limits, name)
            if limit is not None:
                limits[name] = limit
        return {
            "unit": "tokens",
            "method": method.method,
            "exact": method.exact,
            "total": self.total_tokens,
            "carried": self.carried_tokens,
            "requests": self.requests,
            "tiers": tiers,
            "limits": limits,
            "warnings": list(self.warnings),
        }

    def _admit(
        self, tier: Tier, name: str, text: str, start: int, handle: str | None
    ) -> Admitted:
        # A model that does not see its error repeats the call, which costs more than
        # the error.
        left = None if tier in _ALWAYS_SHOWN else self.remaining(tier)
        page_tokens = self.page_tokens(tier)
        if left is None:
            left = page_tokens
        elif page_tokens is not None:
            left = min(left, page_tokens)
        whole = self._size(text[start:], left)
        if left is None or whole <= left:
            return Admitted(
                text[start:], whole, warnings=self._spend(tier, name, whole)
            )
        if tier not in _PAGED or left < self.smallest_page:
            return Admitted("", 0, refusal=self._refusal(tier, name, whole))
        key = handle or self._hold(tier, name, text)
        # The notice costs tokens too, and its numbers vary in length: reserve tokens for
        # the longest.
        reserve = self.count(self._notice(f"{key}:{len(text)}", whole, whole))
        part = page(text, left - reserve, self.count, start=start)
        if not part.text:
            return Admitted("", 0, refusal=self._refusal(tier, name, whole))
        following = f"{key}:{part.end}"
        tokens_after = self._size(text[part.end :], left)
        notice = self._notice(following, tokens_after, self._size(text, left))
        shown = part.text + notice
        tokens = self.count(shown)
        return Admitted(
            shown, tokens, following, warnings=self._spend(tier, name, tokens)
        )

    def _size(self, text: str, left: int | None) -> int:
        """Return the tokens of *text*; an estimate if it is many times longer than the
        remaining tokens.
        """
        # Ten megabytes take three seconds to count.
        if left is None or len(text) <= max(8 * left, _COUNTED_AT_ONCE):
            return self.count(text)
        return len(text) // 4

    def _notice(self, handle: str, left: int, whole: int) -> str:
        return (
            "\n"
            f"[cut: {left:,} of {whole:,} tokens left; to read on: "
            f"{self._read_on.format(handle=handle)}]"
        )

    def _hold(self, tier: Tier, name: str, text: str) -> str:
        # One ledger may serve several clients, which must not guess the handles of one
        # another.
        key = f"{tier.value}-{os.urandom(6).hex()}"
        self._held[key] = (tier, name, text)
        # Drop the oldest text: a model continues the text that it has just seen.
        if len(self._held) > self._held_texts:
            self._held.popitem(last=False)
        return key

    def _spend(self, tier: Tier, name: str, tokens: int) -> tuple[str, ...]:
        before = {limit_name: used for limit_name, _, used in self._limits_of(tier)}
        self._spent[tier][name] = self._spent[tier].get(name, 0) + tokens
        self._times[tier] += 1
        new: list[str] = []
        for limit_name, limit, used in self._limits_of(tier):
            # Warn once for each limit, when a text crosses the share.
            threshold = limit * self.limits.warn_at
            if before[limit_name] < threshold <= used:
                new.append(f"{used:,} of {limit:,} tokens spent ({limit_name})")
        self.warnings += new
        return tuple(new)

    def _limits_of(self, tier: Tier) -> list[tuple[str, int, int]]:
        """Return the limits that *tier* counts against: name, tokens, tokens used."""
        limits: list[tuple[str, int, int]] = []
        # Errors, retries, schemas and results have no limit of their own, only the
        # total.
        own = getattr(self.limits, f"{tier.value}_tokens", None)
        if own is not None:
            limits.append((f"{tier.value}_tokens", own, self.spent(tier)))
        if self.limits.total_tokens is not None:
            limits.append(("total_tokens", self.limits.total_tokens, self.total_tokens))
        return limits

    def _refusal(self, tier: Tier, name: str, tokens: int) -> SkillError:
        # The limit with the fewest remaining tokens refuses.
        page = ("page_tokens", self.page_tokens(tier) or 0, 0)
        limit_name, limit, used = min(
            self._limits_of(tier), key=lambda one: one[1] - one[2], default=page
        )
        return SkillError(
            ErrorCode.TOKEN_LIMIT_EXCEEDED,
            f"The {tier.value} of {name!r} needs {tokens:,} tokens; "
            f"{max(limit - used, 0):,} of {limit:,} are left",
            recoverable=False,
            details={
                "limit": limit_name,
                "limit_tokens": limit,
                "spent_tokens": used,
                "needed_tokens": tokens,
            },
            suggested_action=_NEXT_STEP[tier],
        )


_LIMITS = (
    "catalog_tokens",
    "body_tokens",
    "resource_tokens",
    "total_tokens",
    "page_tokens",
)
_COUNTED_AT_ONCE = 64 * 1024  # characters
# A truncated schema is useless, and a catalog is shortened when it is rendered, so
# neither is paged.
_PAGED = frozenset({Tier.BODY, Tier.RESOURCE, Tier.RESULT})
_ALWAYS_SHOWN = frozenset({Tier.ERROR, Tier.RETRY})
_NEXT_STEP = {
    Tier.CATALOG: "Render the catalog again within the tokens that are left",
    Tier.BODY: "Work with the skills that are already active, or answer with what you "
    "have",
    Tier.RESOURCE: "Work from the instructions already loaded; do not read more files",
    Tier.SCHEMA: "Use the tools that are already offered",
    Tier.RESULT: "Answer with the results you have, or call again asking for less",
    Tier.ERROR: "Answer with what you have",
    Tier.RETRY: "Answer with what you have",
}
