"""What one conversation has activated, what it spent, where its files lie, and what it was refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Protocol, Unpack

from skillruntime.catalog.catalog import SkillCatalog
from skillruntime.catalog.rendering import Rendered
from skillruntime.catalog.skill import Skill
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import SkillError, SkillRuntimeError, TokenLimitError
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_record import CallRecord, Operation, record_of, start
from skillruntime.runtime.workspace import Workspace
from skillruntime.tokens.budget import Admitted, Tier, TokenLedger, TokenLimits
from skillruntime.tokens.counter import Model

__all__ = ["SkillSession", "digest_of", "fingerprint", "render_activation"]

_REMEMBERED = 256  # refused calls, the oldest forgotten first
_SMALLEST_RESULT = 24  # tokens of an envelope around a number
_UNCOUNTED = 256 * 1024  # characters that wait to be counted, where there is no limit to keep
_UNCOUNTED_TEXTS = 2_048


class Calls(Protocol):
    """What a session needs of its runtime."""

    @property
    def catalog(self) -> SkillCatalog:
        """The skills."""
        ...

    def contract(self, name: str) -> Contract:
        """Return the contract of the callable *name*."""
        ...

    def callable_names(self) -> list[str]:
        """Return what can be called."""
        ...

    async def call(
        self, name: str, arguments: Any, *, session: SkillSession | None = None, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call *name* and return the envelope."""
        ...

    def call_blocking(
        self, name: str, arguments: Any, *, session: SkillSession | None = None, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call *name* without an event loop and return the envelope."""
        ...

    def notify(self, record: CallRecord) -> None:
        """Tell those who observe."""
        ...


class SkillSession:
    """One conversation with a `SkillRuntime`; its tools may run in several threads at once.

    It owns a workspace: the host's directory, or a temporary one that is removed when the session is closed. It owns
    the ledger: every catalog, body, resource, result and error that it gives is recorded. With *limits*, what does not
    fit is shortened (the catalog), paged with a handle for `read_on` (bodies, resources, results), or refused with a
    next step; errors are always told. *model* is whose tokens are counted. With *tell_tokens* each envelope's
    ``metadata.tokens`` says what is spent so far, itself not counted.
    """

    def __init__(
        self,
        runtime: Calls,
        *,
        workspace: str | os.PathLike[str] | Workspace | None = None,
        limits: TokenLimits | None = None,
        model: Model = "gpt-4o",
        tell_tokens: bool = False,
    ) -> None:
        self.runtime = runtime
        self.id = uuid.uuid4().hex
        self.workspace = workspace if isinstance(workspace, Workspace) else Workspace(workspace)
        self.limits = limits
        self._tells_tokens = tell_tokens
        self._ledger = TokenLedger(limits, model=model)
        self._lock = threading.RLock()
        self._uncounted: list[Callable[[], object]] = []
        self._uncounted_characters = 0
        self._active: dict[str, Skill] = {}
        self._shown: dict[str, str] = {}
        self._refused: OrderedDict[str, int] = OrderedDict()

    @property
    def active(self) -> Mapping[str, Skill]:
        """The skills activated so far, by name, in the order of their first activation."""
        return MappingProxyType(self._active)

    @property
    def ledger(self) -> TokenLedger:
        """What the conversation has spent. Without limits, what was said is counted only when this is asked for."""
        with self._lock:
            waiting, self._uncounted, self._uncounted_characters = self._uncounted, [], 0
            for count in waiting:
                count()
            return self._ledger

    def render_catalog(
        self, budget_tokens: int | None = None, style: str = "compact", *, pins: tuple[str, ...] = ()
    ) -> Rendered:
        """Return the text that tells the model of the skills, within *budget_tokens* and what may still be spent."""
        with self._lock:
            left = self.ledger.remaining(Tier.CATALOG) if self.limits else None
            budget = min((one for one in (budget_tokens, left) if one is not None), default=None)
            rendered = self.fit_catalog(budget, style, pins=pins)
            self.record_catalog(rendered)
            return rendered

    def fit_catalog(
        self, budget_tokens: int | None = None, style: str = "compact", *, pins: tuple[str, ...] = ()
    ) -> Rendered:
        """Return the catalog within *budget_tokens*, and record nothing: tokens are counted only where they matter."""
        catalog = self.runtime.catalog
        whole = catalog.render(None, style, pins=pins)  # estimated, on the high side
        if budget_tokens is None or whole.tokens * 1.1 <= budget_tokens:
            return whole
        return catalog.render(budget_tokens, style, pins=pins, count=self._ledger.count)

    def record_catalog(self, rendered: Rendered) -> None:
        """Record a catalog that was rendered for several conversations at once."""
        self._admit(Tier.CATALOG, "catalog", rendered.text)

    def activate(self, name: str, *, to_tool_name: Callable[[str], str] = str) -> str:
        """Return the skill's instructions, files and callable tools, as a model reads them.

        *to_tool_name* says under which name the model calls them, where that is not their own.

        The second activation is one line, unless the skill's text has changed since.

        Raises:
            SkillNotFoundError: no such skill; the closest names are in its suggested action.
            TokenLimitError: the instructions do not fit what may still be spent.
        """
        began = start()
        try:
            skill = self.runtime.catalog.activate(name)
            digest = fingerprint(skill)
            with self._lock:
                is_known = self._shown.get(skill.name) == digest
                text = _ALREADY_ACTIVE.format(skill.name) if is_known else render_activation(skill, to_tool_name)
                text = self._admitted(Tier.BODY, skill.name, text)
                self._active[skill.name] = skill
                self._shown[skill.name] = digest
        except SkillRuntimeError as error:
            self.runtime.notify(record_of(Operation.LOAD, str(name), began, error, session_id=self.id))
            raise
        self.runtime.notify(record_of(Operation.LOAD, skill.name, began, session_id=self.id))
        return text

    def retell(self, name: str, *, to_tool_name: Callable[[str], str] = str) -> str:
        """Return the instructions of *name* as they are now, for a conversation that lost the place where they stood.

        What does not fit what may still be spent is said in their place.

        Raises:
            SkillNotFoundError: the skill is gone.
        """
        text = render_activation(self.runtime.catalog.activate(name), to_tool_name)
        try:
            return self._admitted(Tier.BODY, name, text)
        except TokenLimitError as error:
            return f"The instructions of {name!r} are not told again: {error}."

    def resume(self, shown: Mapping[str, str]) -> None:
        """Take over what a conversation already shows: the `fingerprint` of each active skill, by name.

        What is not in it is active no more; a skill whose text is another by now is shown again when activated.
        """
        with self._lock:
            self._shown = dict(shown)
            for name in [name for name in self._active if name not in shown]:
                del self._active[name]

    def read_resource(self, name: str, path: str) -> str:
        """Return the text of one of the skill's files, or its first page.

        Raises:
            SkillNotFoundError: no such skill.
            ResourceNotFoundError: no such text in the skill; the closest paths are in its suggested action.
            TokenLimitError: it does not fit what may still be spent.
        """
        began = start()
        try:
            text = self.runtime.catalog.activate(name).read_resource(path)
            text = self._admitted(Tier.RESOURCE, f"{name}/{path}", text)
        except SkillRuntimeError as error:
            self.runtime.notify(record_of(Operation.READ, str(name), began, error, path=path, session_id=self.id))
            raise
        self.runtime.notify(record_of(Operation.READ, name, began, path=path, session_id=self.id))
        return text

    def read_on(self, handle: str) -> str:
        """Return the next part of a text that was cut, by the handle that came with the part before.

        Raises:
            ResourceNotFoundError: the handle is unknown, or its text is no longer kept.
            TokenLimitError: it does not fit what may still be spent.
        """
        with self._lock:
            return _text_of(self.ledger.read_on(handle))

    def note_request(self) -> None:
        """Note that all that was told so far went to the model once more: the ledger's ``carried_tokens``."""
        self._wait(self._ledger.note_request, 0)

    def admit_schema(self, name: str, schema: str) -> SkillError | None:
        """Record the definition of the tool *name* as it is sent; return why not, where it may not be."""
        if self.limits is None:
            self._later(Tier.SCHEMA, name, schema)
            return None
        with self._lock:
            return self.ledger.admit(Tier.SCHEMA, name, schema).refusal

    async def call(self, name: str, arguments: Any, **options: Unpack[CallOptions]) -> SkillResponse:
        """Call a skill within this session: as `SkillRuntime.call`."""
        return await self.runtime.call(name, arguments, session=self, **options)

    def call_blocking(self, name: str, arguments: Any, **options: Unpack[CallOptions]) -> SkillResponse:
        """Call a skill within this session: as `SkillRuntime.call_blocking`."""
        return self.runtime.call_blocking(name, arguments, session=self, **options)

    def require_room(self) -> None:
        """Raise before a skill is run whose result could not be told at all.

        Raises:
            TokenLimitError: nothing is left for results.
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

    def settle(self, name: str, arguments: Any, response: SkillResponse) -> SkillResponse:
        """Record a call and its answer, and return the answer as it may be told: whole, its first page, or refused.

        Of a paged answer ``data`` is the text of the first page, and ``metadata.read_on`` the handle for the rest.
        """
        try:
            text = response.to_json()
        except (TypeError, ValueError, RecursionError):  # whoever writes it for a model will say so
            return response
        sent = _as_text(arguments)
        if self.limits is None and not self._tells_tokens:
            self._wait(lambda: self._ledger.record_call(name, sent, text, ok=response.ok), len(text) + len(sent))
            return response
        with self._lock:
            if response.ok and not self._fits(text):
                text = response.data if isinstance(response.data, str) else _as_text(response.data)
            admitted = self.ledger.record_call(name, sent, text, ok=response.ok)
            metadata = dict(response.metadata or {})
            if admitted.warnings:
                metadata["warnings"] = [*metadata.get("warnings", ()), *admitted.warnings]
            if self._tells_tokens:
                metadata["tokens"] = self._ledger.summary()
        if admitted.refusal is not None:
            return SkillResponse.failed(admitted.refusal, metadata=metadata)
        if admitted.handle is not None:
            metadata["read_on"] = admitted.handle
            return dataclasses.replace(response, data=admitted.text, metadata=metadata)
        return dataclasses.replace(response, metadata=metadata or None)

    def count_refusal(self, name: str, arguments: Any, version: str | None) -> int:
        """Remember that this very call was refused, and return how many times it has been."""
        key = _identity(name, arguments, version)
        with self._lock:
            times = self._refused.pop(key, 0) + 1
            self._refused[key] = times
            if len(self._refused) > _REMEMBERED:
                self._refused.popitem(last=False)
        return times

    def close(self) -> None:
        """Remove the session's temporary workspace; a workspace that the host gave stays."""
        self.workspace.close()

    def __enter__(self) -> SkillSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _fits(self, text: str) -> bool:
        left = self.ledger.remaining(Tier.RESULT)
        page = self._ledger.limits.page_tokens
        at_once = None if page is None else max(page, self._ledger.smallest_page)
        room = min((one for one in (left, at_once) if one is not None), default=None)
        return room is None or self._ledger.count(text) <= room

    def _admitted(self, tier: Tier, name: str, text: str) -> str:
        admitted = self._admit(tier, name, text)
        return text if admitted is None else _text_of(admitted)

    def _admit(self, tier: Tier, name: str, text: str) -> Admitted | None:
        """Record *text*; without limits it is counted later, if ever."""
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
            if self._uncounted_characters > _UNCOUNTED or len(self._uncounted) > _UNCOUNTED_TEXTS:
                _ = self.ledger


def render_activation(skill: Skill, to_tool_name: Callable[[str], str] = str) -> str:
    """Return an activated skill as a model reads it: the instructions, then the files, then the callable tools.

    The scripts of a skill with callable tools are not listed: they are called, not read.
    """
    parts = [f'<skill name="{skill.name}">', skill.body.strip(), "</skill>"]
    contracts = skill.contracts
    resources = [item for item in skill.resources() if not (contracts and item.path.startswith("scripts/"))]
    if resources:
        parts.append("Files, read with the skill's name and this path:")
        parts += [f"- {resource.path} ({resource.bytes:,} bytes)" for resource in resources]
    if contracts:
        parts.append("Callable:")
        parts += [f"- {to_tool_name(name)}: {contract.description}" for name, contract in contracts.items()]
    return "\n".join(parts)


def fingerprint(skill: Skill) -> str:
    """Return what identifies this edition of the skill: a digest of its instructions, contracts and scripts."""
    return skill.digest()


def digest_of(text: str) -> str:
    """Return what tells one text from another: 16 hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


_ALREADY_ACTIVE = "{!r} is already active; its instructions stand above."


def _text_of(admitted: Admitted) -> str:
    if admitted.refusal is not None:
        raise _refused(admitted.refusal)
    return admitted.text


def _refused(refusal: SkillError) -> TokenLimitError:
    return TokenLimitError(
        refusal.message,
        details=refusal.details,
        suggested_action=refusal.suggested_action,
        recoverable=refusal.recoverable,
    )


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))


def _identity(name: str, arguments: Any, version: str | None) -> str:
    try:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError):
        text = repr(type(arguments))
    return hashlib.sha256(repr((name, version, text)).encode("utf-8", "surrogatepass")).hexdigest()
