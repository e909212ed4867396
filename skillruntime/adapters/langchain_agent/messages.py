"""The part of an agent's state about skills: the loaded skills, and the messages with
instructions and answers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AIMessage, SystemMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from typing_extensions import TypedDict

from skillruntime.adapters.langchain_agent.checkpoints import storable
from skillruntime.adapters.langchain_agent.model_reply import refused_call
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.presentation.activation import as_text, digest_of

_MOST_FILES = 1_000  # names in a thread's state; the list must not grow forever


class LoadedSkill(TypedDict):
    """One loaded skill: its fingerprint, a digest of the message that shows its
    instructions, and when it was used.

    ``used`` is a counter, not a time: the highest was used last.
    """

    edition: str
    text: str
    used: int


def merge_loaded(
    before: Mapping[str, LoadedSkill | None] | None,
    update: Mapping[str, LoadedSkill | None] | None,
) -> dict[str, LoadedSkill | None]:
    """Return the state after *update*: the reducer. A value of None unloads the skill.

    >>> merge_loaded({"a": {"edition": "1", "text": "t", "used": 1}}, {"a": None})
    {}
    """
    # LangGraph applies the updates of parallel tool calls one by one: each names only
    # the skill that it touched.
    merged = {**(before or {}), **(update or {})}
    return {name: loaded for name, loaded in merged.items() if loaded is not None}


def merge_files(before: list[str] | None, update: list[str] | None) -> list[str]:
    """Return the state after *update*: the reducer. The latest 1,000 are kept.

    >>> merge_files(["a", "b"], ["c", "a"])
    ['a', 'b', 'c']
    """
    return [*dict.fromkeys([*(before or []), *(update or [])])][-_MOST_FILES:]


def merge_texts(before: list[str] | None, update: list[str] | None) -> list[str]:
    """Return the state after *update*: the reducer. Each name is kept once.

    >>> merge_texts(["a", "b"], ["c", "a"])
    ['a', 'b', 'c']
    """
    return [*dict.fromkeys([*(before or []), *(update or [])])]


def add_tokens(
    before: dict[str, int] | None, update: dict[str, int] | None
) -> dict[str, int]:
    """Return the state after *update*: the reducer. Each parallel call adds the tokens
    that it spent.

    >>> add_tokens({"body": 120}, {"body": 30, "result": 12})
    {'body': 150, 'result': 12}
    """
    total = dict(before or {})
    for tier, tokens in (update or {}).items():
        total[tier] = total.get(tier, 0) + tokens
    return total


class SkillState(AgentState[Any]):
    """The middleware's data in an agent's state."""

    loaded_skills: NotRequired[
        Annotated[dict[str, Any], PrivateStateAttr, merge_loaded]
    ]
    skill_files: NotRequired[Annotated[list[str], PrivateStateAttr, merge_files]]
    """The files of the workspace that the conversation made, which its model may read;
    see `ConversationState.files`.
    """
    skill_tokens: NotRequired[Annotated[dict[str, int], PrivateStateAttr, add_tokens]]
    """With limits, what the conversation has spent, by tier: see
    `ConversationState.take_spent`.
    """
    skill_texts: NotRequired[Annotated[list[str], PrivateStateAttr, merge_texts]]
    """With limits, the names of the texts in every request that were already
    counted.
    """
    skill_session: NotRequired[Annotated[str, PrivateStateAttr]]
    skill_turn: NotRequired[Annotated[str, PrivateStateAttr]]
    """The name of the model's last message within the conversation; see `first_turn`.
    """


def first_turn(state: Mapping[str, Any], parent: str) -> str:
    """Return the name of the turn in which a run begins: different for each run, the
    same if the run is restarted.

    It is computed from the messages up to the last one that the model did not write,
    because the ids differ in a history that a caller sends again. *parent* names the
    task of the graph around this one, so that two agents of one thread differ.
    """
    messages = state.get("messages") or []
    begun = 0
    for number, message in enumerate(messages, start=1):
        if message.type == "human":
            begun = number
    contents = [
        (message.type, message.content, getattr(message, "tool_calls", None))
        for message in messages[:begun]
    ]
    turn = digest_of(as_text([state.get("skill_turn"), parent, contents]))
    for message in messages[begun:]:
        if isinstance(message, AIMessage):
            # The form in which `SkillMiddleware` names the turn after each message of
            # the model.
            turn = digest_of(turn)
    return turn


def active_skills(state: Mapping[str, Any], limit: int) -> dict[str, LoadedSkill]:
    """Return the active skills in the order of loading: the *limit* most recently used
    of the loaded skills.
    """
    loaded: Mapping[str, LoadedSkill] = state.get("loaded_skills") or {}
    if len(loaded) <= limit:
        return dict(loaded)
    # Chosen by use, but in the order of loading, so that the prompt stays
    # byte-identical.
    kept = sorted(loaded, key=lambda name: loaded[name]["used"], reverse=True)[:limit]
    return {name: loaded[name] for name in loaded if name in kept}


def next_use(state: Mapping[str, Any]) -> int:
    """Return the ``used`` counter for a skill that is used now."""
    loaded: Mapping[str, LoadedSkill] = state.get("loaded_skills") or {}
    return max((one["used"] for one in loaded.values()), default=0) + 1


def loading_answers(messages: Sequence[Any]) -> dict[int, str]:
    """Return, by their index, the messages that show a skill's instructions, each with
    the skill's name.

    The text itself is parsed, because a history that a caller sent back as JSON has
    lost artifacts and ``additional_kwargs``.
    """
    found: dict[int, str] = {}
    calls: set[str] = set()
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            # Only of this message: a model may use the same ids in its next one.
            calls = {
                str(call["id"])
                for call in message.tool_calls
                if call["name"] == "load_skill"
            }
        if isinstance(message, ToolMessage) and message.tool_call_id in calls:
            opening = _OPENING.match(message.text)
            if opening is not None:
                found[index] = opening["name"]
    return found


# The beginning of instructions that `render_activation` writes.
_OPENING = lazy_pattern(r'<skill name="(?P<name>[^"]+)">')


def with_text(message: SystemMessage | None, text: str) -> SystemMessage | None:
    """Return the system message with *text* at its end, so that a provider's prompt
    cache keeps its beginning.
    """
    if not text:
        return message
    if message is None:
        return SystemMessage(text)
    # Content blocks keep the cache marks that a host may have put on them.
    if isinstance(message.content, str):
        return message.model_copy(update={"content": f"{message.content}\n\n{text}"})
    return message.model_copy(
        update={"content": [*message.content, {"type": "text", "text": text}]}
    )


def with_each_once(
    messages: list[Any], texts: Mapping[str, str], digest: Callable[[str, str], str]
) -> tuple[list[Any], set[str]]:
    """Return *messages* with each active skill's instructions at most once, and the
    names of the shown skills.

    *texts* are the digests of the messages with instructions; *digest* computes one
    from a skill's name and a text.
    """
    shown: set[str] = set()
    changed = messages
    for index, name in loading_answers(messages).items():
        message = messages[index]
        # A digest, not the edition: a summary may have changed the message itself.
        if texts.get(name) == digest(name, message.text) and name not in shown:
            shown.add(name)
            continue
        if name in texts:
            content = _SUPERSEDED.format(name)
        else:
            content = _UNLOADED.format(name)
        changed = [*changed]
        changed[index] = message.model_copy(update={"content": content})
    return changed, shown


def takes_images(model: Any) -> bool:
    """Return whether *model* accepts images in tool messages, according to its
    LangChain profile.
    """
    return bool((getattr(model, "profile", None) or {}).get("image_tool_message"))


def model_name(model: Any) -> str | None:
    """Return the name that *model*, a chat model of LangChain, has at its provider;
    None if it states none.
    """
    # The fields of the packages of OpenAI, Anthropic and Google, and of AWS.
    for field in ("model_name", "model", "model_id"):
        name = getattr(model, field, None)
        if isinstance(name, str) and name:
            return name
    return None


def without_images(messages: list[Any]) -> list[Any]:
    """Return *messages* with skills' answers reduced to text: an earlier model of the
    conversation accepted images.
    """
    shown = []
    for message in messages:
        is_skills = isinstance(message, ToolMessage) and isinstance(
            message.artifact, SkillResponse
        )
        has_blocks = is_skills and not isinstance(message.content, str)
        if has_blocks:
            message = message.model_copy(update={"content": message.text})
        shown.append(message)
    return shown


def second_answers(messages: Sequence[Any]) -> list[ToolMessage]:
    """Return the answers to calls that a later message answers again; providers reject
    two answers to one call.

    A person who rejects a message's calls (`HumanInTheLoopMiddleware`) also answers the
    broken ones, which were already answered when the message arrived.
    """
    answered: set[str] = set()
    second: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            answered.clear()  # some models count their calls from 1 in every message
        elif isinstance(message, ToolMessage):
            if message.tool_call_id in answered:
                second.append(message)
            answered.add(message.tool_call_id)
    return second


def is_loading(skill: str, state: Mapping[str, Any]) -> bool:
    """Return whether the model's last message calls ``load_skill`` for *skill*."""
    # Only the last message: an earlier load is in the state already.
    for message in reversed(state.get("messages") or []):
        if not isinstance(message, AIMessage):
            continue
        for call in message.tool_calls:
            if call["name"] == "load_skill":
                if skill in map(str, call["args"].values()):
                    return True
        return False
    return False


_SUPERSEDED = (
    "The instructions of {!r} were loaded here; they are now elsewhere in this "
    "conversation."
)
_UNLOADED = "{!r} was loaded here and is no longer active; load it again to use it."


# A part of langgraph.prebuilt.tool_node's INVALID_TOOL_NAME_ERROR_TEMPLATE.
_UNKNOWN = "is not a valid tool, try one of"


def refused(
    request: ToolCallRequest, code: ErrorCode, message: str, action: str
) -> ToolMessage:
    """Return the answer to a refused call that the model can correct."""
    call = request.tool_call
    return refused_call(
        call["name"], call["id"], SkillError(code, message, True, None, action)
    )


def in_place_of_framework_text(
    request: ToolCallRequest,
    result: ToolMessage,
    unknown: Callable[[ToolCallRequest], SkillError],
) -> ToolMessage | None:
    """Return the envelope for an unknown tool, with the error from *unknown*.

    LangGraph's own text lists every tool of the agent, including those that are not
    offered at the moment.
    """
    if (
        result.status != "error"
        or request.tool is not None
        or _UNKNOWN not in result.text
    ):
        return None
    call = request.tool_call
    return refused_call(call["name"], call["id"], unknown(request))


def make_storable(answer: ToolMessage) -> None:
    """Let a checkpoint store the answer's artifact; the answer's text has the data in
    any case.
    """
    response = answer.artifact
    if not isinstance(response, SkillResponse):
        return
    try:
        data, metadata = storable(response.data), storable(response.metadata)
    except ValueError:
        data, metadata = None, None
    if data is not response.data or metadata is not response.metadata:
        answer.artifact = replace(response, data=data, metadata=metadata)
