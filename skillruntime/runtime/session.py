"""One conversation with a runtime: the texts that its model is shown about skills, and
its calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn, Unpack

from skillruntime.catalog.rendering import Rendered
from skillruntime.catalog.resources import media_type, read_bytes
from skillruntime.contract.closest_names import closest_names
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import (
    AccessDeniedError,
    ResourceNotFoundError,
    SkillError,
    SkillNotFoundError,
    SkillRuntimeError,
)
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.call_path import CallPath
from skillruntime.runtime.call_record import Operation, notify, record_of, start
from skillruntime.runtime.conversation_state import ConversationState
from skillruntime.runtime.files.images import Image, image_type
from skillruntime.runtime.files.skill_files import write_input
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.presentation.activation import (
    ActiveSkill,
    fingerprint,
    render_activation,
    with_arguments,
    with_directory,
)
from skillruntime.runtime.presentation.shown_files import (
    ShownFile,
    find_made,
    show_directory,
    show_made,
    show_resource,
)
from skillruntime.runtime.presentation.skill_directory import (
    SkillDirectory,
    shown_directory,
)
from skillruntime.tokens.budget import Tier, TokenLedger, TokenLimits
from skillruntime.tokens.counter import tokenizer_of

__all__ = ["SkillSession"]

ToSchema = Callable[[Contract], Mapping[str, Any]]
"""Returns the schema of a callable's arguments for a model."""


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

    def __init__(self, calls: CallPath, state: ConversationState) -> None:
        self._calls = calls
        self.state = state
        """The state of the conversation, which the session's calls also update."""

    def __deepcopy__(self, memo: dict[int, Any]) -> SkillSession:
        # a copied toolkit is in the same conversation, whose tokens are counted once
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a SkillSession cannot be pickled: it holds locks of this process; keep "
            "its conversation here"
        )

    @property
    def id(self) -> str:
        """Random, and the same in the logs and spans of this session alone."""
        return self.state.id

    @property
    def key(self) -> str:
        """The host's name of the conversation; ``id`` where it gave none."""
        return self.state.key

    @property
    def workspace(self) -> Workspace:
        """The directory in which the scripts of the conversation work."""
        return self.state.workspace

    def directory_of(self, name: str) -> SkillDirectory | None:
        """Return the directory of the skill *name* for the conversation's model; None
        if the model is not shown it (see ``SkillRuntime(tell_directories=...)``).
        """
        metadata = self._calls.callables.catalog.get(name)
        return shown_directory(metadata, self.state.shown_workspace)

    @property
    def limits(self) -> TokenLimits | None:
        """How many tokens may be spent; None without limits."""
        return self.state.limits

    @property
    def active(self) -> Mapping[str, ActiveSkill]:
        """The skills activated so far, by name, in the order of their first
        activation.
        """
        return self.state.active

    @property
    def ledger(self) -> TokenLedger:
        """The spent tokens of the conversation. Without limits, texts are counted only
        when this is read.
        """
        return self.state.ledger

    def render_catalog(
        self,
        budget_tokens: int | None = None,
        style: str = "compact",
        *,
        pins: tuple[str, ...] = (),
    ) -> Rendered:
        """Return the catalog as a model reads it, within *budget_tokens* and what may
        still be spent. With limits, the same text is counted once.
        """
        with self.state.lock:
            left = self.state.remaining(Tier.CATALOG)
            at_start = TokenLedger(self.limits).remaining(Tier.CATALOG)
            if left != at_start:
                # The model may already have read the catalog, perhaps in another
                # process: tokens spent since then must not shorten it.
                budget = _smaller(budget_tokens, at_start)
                first = self.fit_catalog(budget, style, pins=pins)
                if self.state.is_counted(Tier.CATALOG, "catalog", first.text):
                    return first
            budget = _smaller(budget_tokens, left)
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
        catalog = self._calls.callables.catalog
        # Each entry has at least one token, so ten thousand entries need not be written
        # to see that they do not fit.
        if budget_tokens is None or len(catalog) <= budget_tokens:
            whole = catalog.render(None, style, pins=pins)
            if budget_tokens is None:
                return whole
            # The estimate errs on the high side on English text; a tenth more covers
            # scripts where it does not.
            _, factor = tokenizer_of(self.state.model)
            if whole.tokens * factor * 1.1 <= budget_tokens:
                return whole
        return catalog.render(
            budget_tokens, style, pins=pins, count=self.state.count_tokens
        )

    def record_catalog(self, rendered: Rendered) -> None:
        """Record a catalog that was rendered for several conversations at once."""
        self.state.record_once(Tier.CATALOG, "catalog", rendered.text)

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
                action.
            TokenLimitError: the instructions do not fit what may still be spent.
        """
        with self._noted(Operation.LOAD, name):
            skill = self._calls.callables.open_skill(name)
            digest = fingerprint(skill)
            # LangGraph runs the tool calls of one message in parallel threads.
            with self.state.lock:
                if self.state.is_shown(skill.name, digest):
                    text = (
                        f"{skill.name!r} is already active; its instructions are above."
                    )
                else:
                    located = with_directory(skill, self.directory_of(skill.name))
                    text = render_activation(located, to_tool_name, to_schema)
                return self.state.show(skill, digest, text)

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
                action.
            AccessDeniedError: its author says that it is not for people to start
                (``user-invocable: false``).
            TokenLimitError: the instructions do not fit what may still be spent.
        """
        with self._noted(Operation.LOAD, name):
            skill = self._calls.callables.open_skill(name)
            if skill.skill is not None and not skill.skill.metadata.user_invocable:
                raise AccessDeniedError(
                    f"The skill {skill.name!r} is not for people to start"
                )
            # Done first, because the person's text is not the skill's.
            located = with_directory(skill, self.directory_of(skill.name))
            text = render_activation(
                with_arguments(located, arguments), to_tool_name, to_schema
            )
            return self.state.show(skill, fingerprint(skill), text)

    def render_again(
        self,
        name: str,
        *,
        to_tool_name: Callable[[str], str] = str,
        to_schema: ToSchema | None = None,
    ) -> str:
        """Return the instructions of *name* once more, for a conversation that was
        trimmed or summarised.

        If they do not fit what may still be spent, the text says so. With limits, the
        same text is counted once.

        Raises:
            SkillNotFoundError: the skill is gone.
        """
        skill = self._calls.callables.open_skill(name)
        located = with_directory(skill, self.directory_of(skill.name))
        text = render_activation(located, to_tool_name, to_schema)
        admitted = self.state.record_once(Tier.BODY, name, text)
        if admitted is None:
            return text
        if admitted.refusal is None:
            return admitted.text
        why = admitted.refusal.message
        return f"The instructions of {name!r} are not repeated here: {why}."

    def resume(self, shown: Mapping[str, str]) -> None:
        """Continue a conversation whose messages already show skills: *shown* maps each
        name to its `fingerprint`.

        Skills that are not in it are no longer active; one that has changed since is
        shown again when activated.
        """
        self.state.resume(shown)

    def read_resource(self, name: str, path: str) -> str:
        """Return a file of the skill *name* as a model reads it, in a
        ``<skill_resource>`` frame; or its first page.

        *path* may be written as `Skill.find_resource` takes it. That of a directory
        gives the list of its files; a file that is not text is copied to
        ``skill-files/NAME/PATH`` of the workspace. Files that the skills of this
        conversation made, or that `write_input` wrote, are read by their path in the
        workspace, whatever the *name*. `Skill.read_resource` returns the text of a
        skill's file alone.

        Raises:
            SkillNotFoundError: no such skill.
            ResourceNotFoundError: there is no such file; the closest paths are in its
                suggested action.
            TokenLimitError: the text exceeds the remaining tokens.
        """
        return self.show_file(name, path).text

    def show_file(
        self, name: str, path: str, *, called_in: SkillSession | None = None
    ) -> ShownFile:
        """Return the result of `read_resource` and, for `images`, the path of the file
        if it is an image.

        *called_in* is the session in which the skills are called, if it is another one:
        the files are those of its workspace.
        """
        with self._noted(Operation.READ, name, path):
            shown = (called_in or self)._file(name, path)
            text = self.state.admit(Tier.RESOURCE, f"{name}/{path}", shown.text)
            return replace(shown, text=text)

    def write_input(self, path: str, text: str, *, overwrite: bool = False) -> str:
        """Write *text* as an input for skills to *path* below ``skill-files`` of the
        workspace; return its path there.

        Raises:
            SkillInputError: *path* leads elsewhere, has a part with a dot at its
                beginning, or is taken and not to be overwritten; or *text* has more
                than 1 MB.
            ToolExecutionError: it cannot be written.
        """
        written = write_input(self.workspace, path, text, overwrite=overwrite)
        self.state.note_files([written])
        return written

    def images(self, response: SkillResponse) -> list[Image]:
        """Return the images that go with *response* to a model that takes images: those
        made, or the one that was read.

        At most as many as have `SkillRuntime.image_bytes` together; their tokens are
        not counted.
        """
        left = self._calls.image_bytes
        if left <= 0:
            return []
        images: list[Image] = []
        for path, read in self._image_files(response.metadata or {}):
            with suppress(SkillRuntimeError):  # gone, or reached through a link
                data = read(path)
                kind = image_type(data)
                if kind is not None and len(data) <= left:
                    images.append(Image(path, kind, data))
                    left -= len(data)
        return images

    def read_on(self, handle: str) -> str:
        """Return the next part of a text that was cut, by the handle that came with the
        part before.

        Raises:
            ResourceNotFoundError: the handle is unknown, or its text is no longer kept.
            TokenLimitError: the text exceeds the remaining tokens.
        """
        return self.state.read_on(handle)

    def has_page(self, handle: str) -> bool:
        """Return whether *handle* is that of a text that was cut, and is still kept."""
        return self.state.has_page(handle)

    def note_request(self) -> None:
        """Record that the complete conversation was sent to the model once more, for
        the ledger's ``carried_tokens``.
        """
        self.state.note_request()

    def admit_schema(self, name: str, schema: str) -> SkillError | None:
        """Record the definition of the tool *name*; return an error if it exceeds the
        remaining tokens. With limits, the same definition is counted once.
        """
        admitted = self.state.record_once(Tier.SCHEMA, name, schema)
        return None if admitted is None else admitted.refusal

    async def call(
        self, name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a skill within this session, as `SkillRuntime.call` does."""
        return await self._calls.call(name, arguments, self.state, options)

    def call_sync(
        self, name: str, arguments: Any, **options: Unpack[CallOptions]
    ) -> SkillResponse:
        """Call a skill within this session, as `SkillRuntime.call_sync` does."""
        return self._calls.call_sync(name, arguments, self.state, options)

    def record_answer(
        self, name: str, arguments: Any, response: SkillResponse
    ) -> SkillResponse:
        """Record a call that was made elsewhere and its answer, and return the answer,
        or the refusal of a result for which no token is left.

        ``data`` stays whole. Of a result that is longer than a page, ``metadata.page``
        is what a model is shown, and ``metadata.read_on`` the handle for the rest.
        """
        return self.state.record_answer(name, arguments, response)

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
        """Notify the runtime's observers of how the block ended."""
        began = start()
        try:
            yield
        except SkillRuntimeError as error:
            record = record_of(
                operation, str(name), began, error, path=path, session_id=self.id
            )
            notify(self._calls.observers, record)
            raise
        record = record_of(operation, name, began, path=path, session_id=self.id)
        notify(self._calls.observers, record)

    def _file(self, name: str, path: str) -> ShownFile:
        """Return the meant file: one of the skill, or one that this conversation knows.
        An exact path has priority.
        """
        made = self.state.files
        try:
            skill = self._calls.callables.open_skill(name).skill
        except SkillNotFoundError:
            written = find_made(self.workspace, path, made)
            if written is None:
                raise
            return self._made_file(written)
        found = None
        if skill is not None:
            found = skill.find_resource(path)
        if skill is not None and found is not None:
            if found == path or path not in made:
                directory = self.directory_of(name)
                return show_resource(skill, found, self.workspace, directory)
        written = find_made(self.workspace, path, made)
        if written is not None:
            return self._made_file(written)
        if skill is None:
            raise ResourceNotFoundError(
                f"The skill {name!r} is a function and has no files",
                suggested_action=f"Load it with load_skill, or call {name!r}",
            )
        below = skill.find_resource_directory(path)
        if below is not None:
            return show_directory(skill, below)
        try:
            return show_resource(skill, path, self.workspace, None)
        except ResourceNotFoundError as error:
            close = closest_names(path, made, 3)
            if close:
                error.suggested_action = (
                    f"{error.suggested_action}; this conversation made "
                    f"{', '.join(close)}"
                )
            raise

    def _made_file(self, path: str) -> ShownFile:
        """Return a file that a skill or the model wrote."""
        catalog = self._calls.callables.catalog
        trusted = [name for name, metadata in catalog.items() if metadata.trusted]
        return show_made(self.workspace, path, trusted)

    def _image_files(
        self, metadata: Mapping[str, Any]
    ) -> Iterator[tuple[str, Callable[[str], bytes]]]:
        """Yield the path of each file with the name of an image, and the function that
        reads it.
        """
        for file in metadata.get("files", ()):
            if media_type(file["path"]).startswith("image/"):
                yield file["path"], partial(read_bytes, str(self.workspace.directory))
        own = metadata.get("resource")
        if own is None:
            return
        if "skill" not in own:
            yield own["path"], partial(read_bytes, str(self.workspace.directory))
            return
        skill = self._calls.callables.open_skill(own["skill"]).skill
        if skill is not None:
            yield own["path"], skill.read_resource_bytes


def _smaller(budget: int | None, left: int | None) -> int | None:
    """Return the smaller of two numbers of tokens; None is without limit."""
    if budget is None:
        return left
    if left is None:
        return budget
    return min(budget, left)
