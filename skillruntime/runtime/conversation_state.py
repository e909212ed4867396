"""The state of one conversation: its active skills, spent tokens, workspace, and
refused calls.

A session and the calls within it both write here. Tools of one conversation may run in
several threads at once, so everything that is written is under one lock.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from skillruntime.contract.response import SkillResponse, to_plain
from skillruntime.errors import TokenLimitError
from skillruntime.forks import renew_locks_of
from skillruntime.runtime.error_responses import Refusals
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.presentation.activation import (
    ActiveSkill,
    as_text,
    digest_of,
    identity_of,
)
from skillruntime.runtime.presentation.model_view import for_model, without_data
from skillruntime.tokens.budget import Admitted, Tier, TokenLedger, TokenLimits
from skillruntime.tokens.counter import Model
from skillruntime.tokens.pages import json_lines
from skillruntime.tokens.schema_views import compact_json

__all__ = ["ConversationState"]

_Result = TypeVar("_Result")

_READ_ON = "read_skill_resource(name='result', path={handle!r})"
_SMALLEST_RESULT = 24  # tokens of an envelope around a number
# Counting tokens costs more than a call, so without limits texts wait until the ledger
# is read. These two bounds limit the memory of a long conversation whose ledger is
# never read.
_UNCOUNTED = 256 * 1024  # characters
_UNCOUNTED_TEXTS = 2_048


class ConversationState:
    """The state of one conversation, which a `SkillSession` has; see there for the
    arguments.
    """

    def __init__(
        self,
        *,
        workspace: str | os.PathLike[str] | Workspace | None = None,
        limits: TokenLimits | None = None,
        model: Model = "gpt-4o",
        report_tokens: bool = False,
        counts_tokens: bool = True,
        key: str | None = None,
        tell_directories: bool = False,
    ) -> None:
        # Not a counter: it is in logs and spans of several processes.
        self.id: str = os.urandom(16).hex()
        self.key: str = self.id if key is None else key
        if isinstance(workspace, Workspace):
            self.workspace: Workspace = workspace
        else:
            self.workspace = Workspace(workspace)
        self._tell_directories = tell_directories
        self.limits = limits
        self.lock: threading.RLock = threading.RLock()
        """Hold it from reading the remaining tokens, or the shown skills, until they
        are spent or shown: two threads must not both spend the same tokens.
        """
        self._reports_tokens = report_tokens
        self._counts_tokens = counts_tokens
        self._ledger = TokenLedger(limits, model=model, read_on=_READ_ON)
        self._uncounted: deque[Callable[[], object]] = deque()
        self._uncounted_characters = 0
        self._counting = threading.RLock()  # separate from `lock`, which calls wait for
        self._counter: threading.Thread | None = None
        self._active: dict[str, ActiveSkill] = {}
        self._shown: dict[str, str] = {}
        self._files: dict[str, None] = {}
        self._counted: set[str] = set()
        self._newly_counted: dict[str, None] = {}
        self._refusals = Refusals()
        renew_locks_of(self)

    def renew_locks(self) -> None:
        """Replace the locks, in a child whose parent's threads may hold them."""
        self.lock = threading.RLock()
        self._counting = threading.RLock()

    @property
    def ledger(self) -> TokenLedger:
        """The spent tokens of the conversation; reading this counts every waiting
        text.
        """
        with self._counting:
            self._uncounted_characters = 0
            while self._uncounted:
                self._uncounted.popleft()()
            return self._ledger

    # What was shown

    @property
    def shown_workspace(self) -> Path | None:
        """The directory of the workspace, if the model is shown where it and trusted
        skills lie.
        """
        if not self._tell_directories:
            return None
        return self.workspace.directory

    @property
    def active(self) -> Mapping[str, ActiveSkill]:
        """The skills activated so far, by name, in the order of their first
        activation.
        """
        return MappingProxyType(self._active)

    def is_shown(self, name: str, digest: str) -> bool:
        """Return whether the conversation shows the current edition of the skill
        *name*.
        """
        return self._shown.get(name) == digest

    def show(self, skill: ActiveSkill, digest: str, text: str) -> str:
        """Make *skill* active, and return *text*, its instructions, in the form that
        may be shown.

        Raises:
            TokenLimitError: the instructions exceed the remaining tokens.
        """
        with self.lock:
            # Admitted first: if the limits refuse the text, the skill does not become
            # active.
            admitted = self.admit(Tier.BODY, skill.name, text)
            self._active[skill.name] = skill
            self._shown[skill.name] = digest
            return admitted

    def resume(self, shown: Mapping[str, str]) -> None:
        """Set the shown skills to *shown*, digests by name; no other skill is
        active.
        """
        with self.lock:
            self._shown = dict(shown)
            for name in list(self._active):
                if name not in shown:
                    del self._active[name]

    @property
    def files(self) -> Collection[str]:
        """The paths in the workspace of the files that skills of the conversation made
        and that its model wrote; it may read no other file there.
        """
        return tuple(self._files)

    def note_files(self, paths: Iterable[str]) -> None:
        """Record that the files at *paths* of the workspace belong to the
        conversation.
        """
        with self.lock:
            self._files.update(dict.fromkeys(paths))

    # What was spent

    @property
    def model(self) -> Model:
        """The model, or the function, whose tokens are counted."""
        return self._ledger.model

    def count_for(self, model: Model) -> None:
        """Count the tokens of the following texts for *model*."""
        self._ledger.model = model

    @property
    def count_tokens(self) -> Callable[[str], int]:
        """The function that counts the tokens of a text for the conversation's
        model.
        """
        return self._ledger.count

    def remaining(self, tier: Tier) -> int | None:
        """Return how many tokens *tier* may still take; None without a limit."""
        if self.limits is None:
            return None
        return self.ledger.remaining(tier)

    def admit(self, tier: Tier, name: str, text: str) -> str:
        """Record *text* of *name*, and return it in the form that may be shown.

        Raises:
            TokenLimitError: the text exceeds the remaining tokens.
        """
        admitted = self.record(tier, name, text)
        if admitted is None:
            return text
        return _text_of(admitted)

    def record(self, tier: Tier, name: str, text: str) -> Admitted | None:
        """Record *text* of *name*; without limits it is counted later, when the ledger
        is read, and the answer is None.
        """
        if self.limits is None:
            self._wait(lambda: self._ledger.admit(tier, name, text), len(text))
            return None
        with self.lock:
            return self.ledger.admit(tier, name, text)

    def record_once(self, tier: Tier, name: str, text: str) -> Admitted | None:
        """Record a *text* that every request contains, such as a tool's definition. If
        there are limits, the same text is counted only once.

        Return what `record` returns; None if the text was counted before.
        """
        if self.limits is None:
            return self.record(tier, name, text)
        with self.lock:
            if self.is_counted(tier, name, text):
                return None
            admitted = self.record(tier, name, text)
            # A truncated text differs from process to process, because its handle is
            # random.
            if admitted is not None and admitted.ok and admitted.handle is None:
                self._newly_counted[_text_key(tier, name, text)] = None
            return admitted

    def is_counted(self, tier: Tier, name: str, text: str) -> bool:
        """Return whether `record_once` has counted *text* of *name*."""
        key = _text_key(tier, name, text)
        return key in self._counted or key in self._newly_counted

    def take_spent(self) -> tuple[dict[str, int], list[str]]:
        """Return the changes since the last call of this method, for `continue_from`:
        the spent tokens by tier, and names for the texts that `record_once` counted.

        Both are empty without limits.
        """
        if self.limits is None:
            return {}, []
        with self.lock:
            counted = list(self._newly_counted)
            self._counted.update(counted)
            self._newly_counted.clear()
            return self.ledger.take_new(), counted

    def continue_from(self, spent: Mapping[str, int], texts: Iterable[str]) -> None:
        """Continue a conversation that other processes may share: *spent* and *texts*
        are the sums of the results of `take_spent` in all of them.
        """
        if self.limits is None:
            return
        with self.lock:
            self._ledger.continue_from(spent)
            self._counted.update(texts)

    def read_on(self, handle: str) -> str:
        """Return the next part of a truncated text, by the handle that came with the
        previous part.

        Raises:
            ResourceNotFoundError: the handle is unknown, or its text is no longer kept.
            TokenLimitError: the text exceeds the remaining tokens.
        """
        with self.lock:
            # Without limits the waiting texts do not affect the answer.
            ledger = self._ledger if self.limits is None else self.ledger
            return _text_of(ledger.read_on(handle))

    def has_page(self, handle: str) -> bool:
        """Return whether *handle* belongs to a truncated text that is still kept."""
        return self._ledger.has_page(handle)

    def note_request(self) -> None:
        """Record that the complete conversation was sent to the model once more."""
        self._wait(self._ledger.note_request, 0)

    # Calls

    def count_refusal(self, name: str, arguments: Any, version: str | None) -> int:
        """Count a refusal of this call, and return how many times it was refused."""
        with self.lock:
            return self._refusals.count(identity_of(name, arguments, version))

    def require_result_budget(self) -> None:
        """Check, before a skill runs, that tokens are left for its result.

        Raises:
            TokenLimitError: too few are left for any result.
        """
        if self.limits is None:
            return
        with self.lock:
            left = self.ledger.remaining(Tier.RESULT)
        if left is not None and left < _SMALLEST_RESULT:
            raise TokenLimitError(
                f"Nothing was run: {left} tokens are left, too few for any result",
                details={"left_tokens": left},
                suggested_action="Answer with the results you have",
            )

    async def settle(self) -> None:
        """If there are limits, count in a thread the texts that must be counted before
        a call.
        """
        if self.limits is not None and self._uncounted:
            await _in_thread(lambda: self.ledger)

    def record_answer(
        self, name: str, arguments: Any, response: SkillResponse
    ) -> SkillResponse:
        """Record a call and its answer, and return the answer, or a refusal if no token
        is left for the result.

        ``data`` stays complete. For a result longer than a page, ``metadata.page`` is
        the text for the model, and ``metadata.read_on`` the handle for the rest.
        """
        text = self._written(response)
        if text is not None and self._is_counted_now(response, text):
            return self._recorded(name, as_text(arguments), response, text)
        return self._recorded_later(name, as_text(arguments), response, text)

    async def record_answer_aside(
        self, name: str, arguments: Any, response: SkillResponse
    ) -> SkillResponse:
        """Do the same as `record_answer`, but count tokens in a worker thread."""
        text = self._written(response)
        if text is not None and self._is_counted_now(response, text):
            return await _in_thread(
                lambda: self._recorded(name, as_text(arguments), response, text)
            )
        return self._recorded_later(name, as_text(arguments), response, text)

    def _written(self, response: SkillResponse) -> str | None:
        """Return the answer as JSON; None if it is not recorded."""
        if not self._counts_tokens:
            return None
        try:
            return for_model(response).to_json()
        except (TypeError, ValueError, RecursionError):
            # The adapter that writes the answer for a model reports this.
            return None

    def _is_counted_now(self, response: SkillResponse, text: str) -> bool:
        """Return whether the answer is counted before it is returned: there are limits,
        or it may be longer than a page.
        """
        if self.limits is not None or self._reports_tokens:
            return True
        page = self._ledger.page_tokens(Tier.RESULT)
        has_result = response.ok or response.data is not None
        if page is None or not has_result:
            return False
        # A token has at least one byte.
        return len(text.encode("utf-8", "surrogatepass")) > page

    def _recorded_later(
        self, name: str, sent: str, response: SkillResponse, text: str | None
    ) -> SkillResponse:
        if text is not None:
            self._wait(
                lambda: self._ledger.record_call(name, sent, text, ok=response.ok),
                len(text) + len(sent),
            )
        return response

    def _recorded(
        self, name: str, sent: str, response: SkillResponse, text: str
    ) -> SkillResponse:
        if not response.ok and response.data is not None:
            return self._recorded_failure(name, sent, response)
        with self.lock:
            if response.ok and not self._fits(text):
                page = self._ledger.page_tokens(Tier.RESULT) or 8_000
                text = _long_text(to_plain(response.data), page)
            admitted = self._ledger.record_call(name, sent, text, ok=response.ok)
            metadata = self._with_tokens(response, admitted)
        if admitted.refusal is not None:
            return SkillResponse.failed(admitted.refusal, metadata=metadata)
        return dataclasses.replace(response, metadata=metadata or None)

    def _recorded_failure(
        self, name: str, sent: str, response: SkillResponse
    ) -> SkillResponse:
        """Record a failed call that has data: its errors are always shown, and its data
        within the limits of a result.
        """
        errors = without_data(response).to_json()
        data = to_plain(response.data)
        with self.lock:
            recorded = self._ledger.record_call(name, sent, errors, ok=False)
            text = compact_json(data)
            if not self._fits(text):
                page = self._ledger.page_tokens(Tier.RESULT) or 8_000
                text = _long_text(data, page)
            admitted = self._ledger.admit(Tier.RESULT, name, text)
            warnings = (*recorded.warnings, *admitted.warnings)
            admitted = dataclasses.replace(admitted, warnings=warnings)
            metadata = self._with_tokens(response, admitted)
        response = dataclasses.replace(response, metadata=metadata or None)
        if admitted.refusal is None:
            return response
        listed = [*response.errors, admitted.refusal]
        return dataclasses.replace(response, data=None, errors=listed)

    def _with_tokens(
        self, response: SkillResponse, admitted: Admitted
    ) -> dict[str, Any]:
        """Return the metadata of *response* with the warnings of the *admitted* text
        and, if that was truncated, its page.
        """
        metadata = dict(response.metadata or {})
        if admitted.warnings:
            warnings = metadata.get("warnings", ())
            metadata["warnings"] = [*warnings, *admitted.warnings]
        if self._reports_tokens:
            metadata["tokens"] = self.ledger.summary()
        if admitted.handle is not None:
            metadata |= {"page": admitted.text, "read_on": admitted.handle}
        return metadata

    def _fits(self, text: str) -> bool:
        """Return whether *text* fits one page and the remaining tokens."""
        page = self._ledger.page_tokens(Tier.RESULT)
        limits = [self.remaining(Tier.RESULT), page]
        most = min((limit for limit in limits if limit is not None), default=None)
        if most is None:
            return True
        # Ten megabytes take three seconds to count.
        if len(text) > 8 * max(most, 64):
            return False
        return self._ledger.count(text) <= most

    def _wait(self, count: Callable[[], object], characters: int) -> None:
        """Defer *count*, which counts the tokens of so many *characters*, until the
        ledger is read or many texts wait.
        """
        with self.lock:
            self._uncounted.append(count)
            self._uncounted_characters += characters
            is_much = (
                self._uncounted_characters > _UNCOUNTED
                or len(self._uncounted) > _UNCOUNTED_TEXTS
            )
            if not is_much:
                return
            if self._counter is not None and self._counter.is_alive():
                return
            # Ten megabytes take three seconds of CPU: never in the call, which may run
            # on an event loop.
            self._counter = threading.Thread(target=lambda: self.ledger, daemon=True)
            # RuntimeError: the interpreter is ending and no longer starts threads.
            with suppress(RuntimeError):
                self._counter.start()


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    import anyio.to_thread  # imported when the first call waits, not with the runtime

    # A skill's result is recorded even if the caller stops waiting. It has its own
    # limiter, because plain functions may hold all threads of the default limiter.
    with anyio.CancelScope(shield=True):
        result = await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))
    return result  # noqa: RET504 - for mypy, a scope may swallow what is raised in it


def _text_key(tier: Tier, name: str, text: str) -> str:
    return f"{tier.value} {name} {digest_of(text)}"


def _long_text(data: Any, size: int) -> str:
    """Return *data* as text that can be divided after a line."""
    if isinstance(data, str):
        return data
    return json_lines(data, size)


def _text_of(admitted: Admitted) -> str:
    refusal = admitted.refusal
    if refusal is None:
        return admitted.text
    raise TokenLimitError(
        refusal.message,
        details=refusal.details,
        suggested_action=refusal.suggested_action,
        recoverable=refusal.recoverable,
    )
