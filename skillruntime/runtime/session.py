"""The state of one conversation: activated skills, tokens spent, the workspace, and the
calls that were refused.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

from skillruntime.catalog.rendering import Rendered
from skillruntime.catalog.resources import media_type, read_bytes
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse, to_plain
from skillruntime.errors import (
    AccessDeniedError,
    ResourceNotFoundError,
    SkillError,
    SkillRuntimeError,
    TokenLimitError,
)
from skillruntime.runtime.activation import (
    ActiveSkill,
    as_text,
    fingerprint,
    identity_of,
    render_activation,
    render_resource,
    with_arguments,
)
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_record import Operation, notify, record_of, start
from skillruntime.runtime.error_responses import Refusals
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.images import Image, image_type
from skillruntime.tokens.budget import Admitted, Tier, TokenLedger, TokenLimits
from skillruntime.tokens.counter import Model
from skillruntime.tokens.pages import json_lines

if TYPE_CHECKING:
    from skillruntime.runtime.runtime import SkillRuntime

__all__ = ["SkillSession"]

ToSchema = Callable[[Contract], Mapping[str, Any]]
"""Gives the schema of a callable's arguments as a model reads it."""

_Result = TypeVar("_Result")

_READ_ON = "read_skill_resource(name='result', path={handle!r})"
_SMALLEST_RESULT = 24  # tokens of an envelope around a number
# Counting tokens costs more than a call does, so without limits texts wait until the
# ledger is read. These two bounds keep the memory of a long conversation that never
# asks.
_UNCOUNTED = 256 * 1024  # characters
_UNCOUNTED_TEXTS = 2_048


class SkillSession:
    """One conversation with a `SkillRuntime`; its tools may run in several threads at
    once.

    `SkillRuntime.session` makes one. It owns a workspace: the host's directory, or a
    temporary one that is removed when the session is closed. It owns the ledger: every
    catalog, body, resource, result and error that it returns is recorded. With
    *limits*, a text that does not fit is shortened (the catalog), paged with a handle
    for `read_on` (bodies, resources, results), or refused with a next step; errors are
    always returned. *model* names the tokenizer. With *report_tokens* each envelope's
    ``metadata.tokens`` says what is spent so far, itself not counted. Without
    *counts_tokens*, answers are not recorded: a server has no model that reads them.
    *key* is the host's name of the conversation: calls of the same message are one
    execution also in another process; by default it is random, as ``id`` is.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        *,
        workspace: str | os.PathLike[str] | Workspace | None = None,
        limits: TokenLimits | None = None,
        model: Model = "gpt-4o",
        report_tokens: bool = False,
        counts_tokens: bool = True,
        key: str | None = None,
    ) -> None:
        self._runtime = runtime
        # Not a counter: it is in logs and spans of several processes.
        self.id = os.urandom(16).hex()
        self.key = self.id if key is None else key
        self.workspace = (
            workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        )
        self.limits = limits
        self._reports_tokens = report_tokens
        self._ledger = TokenLedger(limits, model=model, read_on=_READ_ON)
        self._lock = threading.RLock()
        self._counts_tokens = counts_tokens
        self._uncounted: deque[Callable[[], object]] = deque()
        self._uncounted_characters = 0
        self._counting = threading.RLock()  # apart from `_lock`, which calls wait for
        self._counter: threading.Thread | None = None
        self._active: dict[str, ActiveSkill] = {}
        self._shown: dict[str, str] = {}
        self._refusals = Refusals()

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillSession:
        # a copied toolkit is in the same conversation, whose tokens are counted once
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SkillSession cannot be pickled: it holds locks of this process; keep "
            "its conversation here"
        )

    @property
    def active(self) -> Mapping[str, ActiveSkill]:
        """The skills activated so far, by name, in the order of their first
        activation.
        """
        return MappingProxyType(self._active)

    @property
    def ledger(self) -> TokenLedger:
        """What the conversation has spent. Without limits, texts are counted only when
        this is read.
        """
        with self._counting:
            self._uncounted_characters = 0
            while self._uncounted:
                self._uncounted.popleft()()
            return self._ledger

    def render_catalog(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: tuple[str, ...] = (),
    ) -> Rendered:
        """Return the catalog as a model reads it, within *budget_tokens* and what may
        still be spent.
        """
        # One lock for what is left and what is spent: two threads must not both spend
        # the same tokens.
        with self._lock:
            left = self.ledger.remaining(Tier.CATALOG) if self.limits else None
            budget = min(
                (one for one in (budget_tokens, left) if one is not None), default=None
            )
            rendered = self.fit_catalog(budget, style, pins=pins)
            self.record_catalog(rendered)
            return rendered

    def fit_catalog(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: tuple[str, ...] = (),
    ) -> Rendered:
        """Return the catalog within *budget_tokens*, and record nothing.

        Tokens are counted exactly only where the estimate comes near the budget.
        """
        catalog = self._runtime.catalog
        # No entry is shorter than a token: ten thousand need not be written to see that
        # they do not fit.
        if budget_tokens is not None and len(catalog) > budget_tokens:
            return catalog.render(
                budget_tokens, style, pins=pins, count=self._ledger.count
            )
        whole = catalog.render(None, style, pins=pins)
        # The estimate errs on the high side on English text; a tenth more covers
        # scripts where it does not.
        if budget_tokens is None or whole.tokens * 1.1 <= budget_tokens:
            return whole
        return catalog.render(budget_tokens, style, pins=pins, count=self._ledger.count)

    def record_catalog(self, rendered: Rendered) -> None:
        """Record a catalog that was rendered for several conversations at once."""
        self._admit(Tier.CATALOG, "catalog", rendered.text)

    def activate(
        self,
        name: str,
        *,
        to_tool_name: Callable[[str], str] = str,
        to_schema: ToSchema | None = None,
    ) -> str:
        """Return the skill's instructions, files and callable tools, as a model reads
        them.

        *to_tool_name* gives the name under which the model calls a tool, *to_schema*
        its schema if the model does not see it otherwise. A second activation returns
        one line, unless the skill has changed since.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested
                action. TokenLimitError: the instructions do not fit what may still be
                spent.
        """
        with self._noted(Operation.LOAD, name):
            skill = self._runtime.open_skill(name)
            digest = fingerprint(skill)
            with (
                self._lock
            ):  # LangGraph runs the tool calls of one message in parallel threads
                if self._shown.get(skill.name) == digest:
                    text = (
                        f"{skill.name!r} is already active; its instructions are above."
                    )
                else:
                    text = render_activation(skill, to_tool_name, to_schema)
                return self._shown_as(skill, digest, text)

    def invoke(
        self,
        name: str,
        arguments: str = "",
        *,
        to_tool_name: Callable[[str], str] = str,
        to_schema: ToSchema | None = None,
    ) -> str:
        """Return the instructions of a skill that a person starts by its name, filled
        with what they typed after it.

        The text is for the next message of the user; see `with_arguments` for what is
        filled, and `activate` for the rest. `activate` gives the instructions as they
        are written.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested
                action. AccessDeniedError: its author says that it is not for people to
                start (``user-invocable: false``). TokenLimitError: the instructions do
                not fit what may still be spent.
        """
        with self._noted(Operation.LOAD, name):
            skill = self._runtime.open_skill(name)
            if skill.skill is not None and not skill.skill.metadata.user_invocable:
                raise AccessDeniedError(
                    f"The skill {skill.name!r} is not for people to start"
                )
            text = render_activation(
                with_arguments(skill, arguments), to_tool_name, to_schema
            )
            with self._lock:
                return self._shown_as(skill, fingerprint(skill), text)

    def render_again(
        self,
        name: str,
        *,
        to_tool_name: Callable[[str], str] = str,
        to_schema: ToSchema | None = None,
    ) -> str:
        """Return the instructions of *name* once more, for a conversation that was
        trimmed or summarised.

        If they do not fit what may still be spent, the text says so.

        Raises:
            SkillNotFoundError: the skill is gone.
        """
        text = render_activation(
            self._runtime.open_skill(name), to_tool_name, to_schema
        )
        try:
            return self._admitted(Tier.BODY, name, text)
        except TokenLimitError as error:
            return f"The instructions of {name!r} are not repeated here: {error}."

    def resume(self, shown: Mapping[str, str]) -> None:
        """Continue a conversation whose messages already show skills: *shown* maps each
        name to its `fingerprint`.

        Skills that are not in it are no longer active; one that has changed since is
        shown again when activated.
        """
        with self._lock:
            self._shown = dict(shown)
            for name in [name for name in self._active if name not in shown]:
                del self._active[name]

    def read_resource(self, name: str, path: str) -> str:
        """Return one of the skill's text files as a model reads it, in a
        ``<skill_resource>`` frame; or its first page.

        `Skill.read_resource` returns the text alone.

        Raises:
            SkillNotFoundError: no such skill. ResourceNotFoundError: the skill has no
                such text file; the closest paths are in its suggested action.
                TokenLimitError: it does not fit what may still be spent.
        """
        with self._noted(Operation.READ, name, path):
            return self._admitted(
                Tier.RESOURCE, f"{name}/{path}", self._resource(name, path)
            )

    def images(self, response: SkillResponse) -> list[Image]:
        """Return the images that go with *response* to a model that takes images: those
        made, or the one that was read.

        At most as many as have `SkillRuntime.image_bytes` together; their tokens are
        not counted.
        """
        left = self._runtime.image_bytes
        found: list[Image] = []
        for path, read in (
            self._image_files(response.metadata or {}) if left > 0 else ()
        ):
            with suppress(SkillRuntimeError):  # gone, or reached through a link
                data = read(path)
                kind = image_type(data)
                if kind is not None and len(data) <= left:
                    found.append(Image(path, kind, data))
                    left -= len(data)
        return found

    def read_on(self, handle: str) -> str:
        """Return the next part of a text that was cut, by the handle that came with the
        part before.

        Raises:
            ResourceNotFoundError: the handle is unknown, or its text is no longer kept.
            TokenLimitError: it does not fit what may still be spent.
        """
        with self._lock:
            return _text_of(
                (self._ledger if self.limits is None else self.ledger).read_on(handle)
            )

    def has_page(self, handle: str) -> bool:
        """Whether *handle* is that of a text that was cut, and is still kept."""
        return self._ledger.has_page(handle)

    def note_request(self) -> None:
        """Note that the whole conversation was sent to the model once more, for the
        ledger's ``carried_tokens``.
        """
        self._wait(self._ledger.note_request, 0)

    def admit_schema(self, name: str, schema: str) -> SkillError | None:
        """Record the definition of the tool *name*; return an error if it does not fit
        what may still be spent.
        """
        if self.limits is None:
            self._later(Tier.SCHEMA, name, schema)
            return None
        with self._lock:
            return self.ledger.admit(Tier.SCHEMA, name, schema).refusal

    async def call(
        self, name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a skill within this session, as `SkillRuntime.call` does."""
        return await self._runtime.call(name, arguments, session=self, **options)

    def call_sync(
        self, name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a skill within this session, as `SkillRuntime.call_sync` does."""
        return self._runtime.call_sync(name, arguments, session=self, **options)

    def require_result_budget(self) -> None:
        """Check, before a skill runs, that some tokens are left for its result.

        Raises:
            TokenLimitError: too few are left for any result.
        """
        if self.limits is None:
            return
        with self._lock:
            left = self.ledger.remaining(Tier.RESULT)
        if left is not None and left < _SMALLEST_RESULT:
            raise TokenLimitError(
                f"Nothing was run: {left} tokens are left, too few for any result",
                details={"left_tokens": left},
                suggested_action="Answer with the results you have",
            )

    def record_answer(
        self, name: str, arguments: Any, response: SkillResponse
    ) -> SkillResponse:
        """Record a call and its answer, and return the answer, or the refusal of a
        result for which no token is left.

        ``data`` stays whole. Of a result that is longer than a page, ``metadata.page``
        is what a model is shown, and ``metadata.read_on`` the handle for the rest.
        """
        text = self._written(response)
        if text is not None and self._is_counted_now(response, text):
            return self._recorded(name, as_text(arguments), response, text)
        return self._recorded_later(name, as_text(arguments), response, text)

    async def record_answer_aside(
        self, name: str, arguments: Any, response: SkillResponse
    ) -> SkillResponse:
        """Do as `record_answer` does, without counting on the event loop."""
        text = self._written(response)
        if text is not None and self._is_counted_now(response, text):
            return await _in_thread(
                lambda: self._recorded(name, as_text(arguments), response, text)
            )
        return self._recorded_later(name, as_text(arguments), response, text)

    async def settle(self) -> None:
        """Count in a thread what must be known before a call, if there are limits, and
        is not counted yet.
        """
        if self.limits is not None and self._uncounted:
            await _in_thread(lambda: self.ledger)

    def count_refusal(self, name: str, arguments: Any, version: str | None) -> int:
        """Count that this same call was refused, and return how many times it has
        been.
        """
        with self._lock:
            return self._refusals.count(identity_of(name, arguments, version))

    def close(self) -> None:
        """Remove the session's temporary workspace; a workspace that the host gave
        stays.
        """
        self.workspace.close()

    def __enter__(self) -> SkillSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    @contextmanager
    def _noted(
        self, operation: Operation, name: str, path: str | None = None
    ) -> Iterator[None]:
        """Have the runtime's observers learn how what is done within it ended."""
        began = start()
        try:
            yield
        except SkillRuntimeError as error:
            record = record_of(
                operation, str(name), began, error, path=path, session_id=self.id
            )
            notify(self._runtime.observers, record)
            raise
        notify(
            self._runtime.observers,
            record_of(operation, name, began, path=path, session_id=self.id),
        )

    def _written(self, response: SkillResponse) -> str | None:
        """Return the answer as JSON; None where it is not recorded."""
        if not self._counts_tokens:
            return None
        try:
            return response.to_json()
        except (
            TypeError,
            ValueError,
            RecursionError,
        ):  # the adapter that writes it for a model reports this
            return None

    def _is_counted_now(self, response: SkillResponse, text: str) -> bool:
        """Whether the answer is counted before it is returned: there are limits, or it
        may be longer than a page.
        """
        if self.limits is not None or self._reports_tokens:
            return True
        page = self._ledger.page_tokens(Tier.RESULT)
        # A token has a byte at least.
        return (
            response.ok
            and page is not None
            and len(text.encode("utf-8", "surrogatepass")) > page
        )

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
        with self._lock:
            if response.ok and not self._fits(text):
                data = to_plain(response.data)
                page = self._ledger.page_tokens(Tier.RESULT) or 8_000
                text = data if isinstance(data, str) else json_lines(data, page)
            admitted = self._ledger.record_call(name, sent, text, ok=response.ok)
            metadata = dict(response.metadata or {})
            if admitted.warnings:
                metadata["warnings"] = [
                    *metadata.get("warnings", ()),
                    *admitted.warnings,
                ]
            if self._reports_tokens:
                metadata["tokens"] = self.ledger.summary()
        if admitted.refusal is not None:
            return SkillResponse.failed(admitted.refusal, metadata=metadata)
        if admitted.handle is not None:
            metadata |= {"page": admitted.text, "read_on": admitted.handle}
        return dataclasses.replace(response, metadata=metadata or None)

    def _resource(self, name: str, path: str) -> str:
        active = self._runtime.open_skill(name)
        if active.skill is None:
            raise ResourceNotFoundError(
                f"The skill {name!r} is a function and has no files",
                suggested_action=f"Load it with load_skill, or call {name!r}",
            )
        return render_resource(active.skill, path)

    def _image_files(
        self, metadata: Mapping[str, Any]
    ) -> Iterator[tuple[str, Callable[[str], bytes]]]:
        """Yield the path of each file with the name of an image, and what reads it."""
        for file in metadata.get("files", ()):
            if media_type(file["path"]).startswith("image/"):
                yield file["path"], partial(read_bytes, str(self.workspace.directory))
        own = metadata.get("resource")
        if (
            own is not None
            and (skill := self._runtime.open_skill(own["skill"]).skill) is not None
        ):
            yield own["path"], skill.read_resource_bytes

    def _fits(self, text: str) -> bool:
        left = None if self.limits is None else self.ledger.remaining(Tier.RESULT)
        page = self._ledger.page_tokens(Tier.RESULT)
        most = min((one for one in (left, page) if one is not None), default=None)
        # Ten megabytes take three seconds to count.
        return most is None or (
            len(text) <= 8 * max(most, 64) and self._ledger.count(text) <= most
        )

    def _shown_as(self, skill: ActiveSkill, digest: str, text: str) -> str:
        # Admitted first: if the limits refuse the text, the skill does not become
        # active.
        text = self._admitted(Tier.BODY, skill.name, text)
        self._active[skill.name] = skill
        self._shown[skill.name] = digest
        return text

    def _admitted(self, tier: Tier, name: str, text: str) -> str:
        admitted = self._admit(tier, name, text)
        return text if admitted is None else _text_of(admitted)

    def _admit(self, tier: Tier, name: str, text: str) -> Admitted | None:
        """Record *text*; without limits it is counted later, when the ledger is
        read.
        """
        if self.limits is None:
            self._later(tier, name, text)
            return None
        with self._lock:
            return self.ledger.admit(tier, name, text)

    def _later(self, tier: Tier, name: str, text: str) -> None:
        self._wait(lambda: self._ledger.admit(tier, name, text), len(text))

    def _wait(self, count: Callable[[], object], characters: int) -> None:
        with self._lock:
            self._uncounted.append(count)
            self._uncounted_characters += characters
            is_much = (
                self._uncounted_characters > _UNCOUNTED
                or len(self._uncounted) > _UNCOUNTED_TEXTS
            )
            if not is_much or (self._counter is not None and self._counter.is_alive()):
                return
            # Ten megabytes take three seconds of CPU: never in the call, which may run
            # on an event loop.
            self._counter = threading.Thread(target=lambda: self.ledger, daemon=True)
            with suppress(
                RuntimeError
            ):  # the interpreter ends, and starts no thread any more
                self._counter.start()


async def _in_thread(work: Callable[[], _Result]) -> _Result:
    import anyio.to_thread  # imported when the first call waits, not with the runtime

    # What a skill returned is recorded though the caller stops waiting. A limiter of
    # its own: plain functions may hold every thread of the event loop's.
    with anyio.CancelScope(shield=True):
        result = await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1))
    return result  # noqa: RET504 - mypy takes it that a scope may swallow what is raised in it


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
