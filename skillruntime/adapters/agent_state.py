"""Which skills a conversation has loaded: values that an agent's state, and so its checkpoints, hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from typing_extensions import TypedDict

from skillruntime.runtime.activation import as_text, digest_of


class LoadedSkill(TypedDict):
    """One loaded skill: its fingerprint, a digest of the message that shows its instructions, and when it was used.

    ``used`` is a counter, not a time: the highest was used last.
    """

    edition: str
    text: str
    used: int


def merge_loaded(
    before: Mapping[str, LoadedSkill | None] | None, update: Mapping[str, LoadedSkill | None] | None
) -> dict[str, LoadedSkill | None]:
    """Return the state after *update*: the reducer. None instead of a skill unloads it.

    >>> merge_loaded({"a": {"edition": "1", "text": "t", "used": 1}}, {"a": None})
    {}
    """
    # LangGraph applies the updates of parallel tool calls one by one: each names only the skill that it touched.
    merged = {**(before or {}), **(update or {})}
    return {name: loaded for name, loaded in merged.items() if loaded is not None}


class SkillState(AgentState[Any]):
    """What the middleware keeps in an agent's state."""

    loaded_skills: NotRequired[Annotated[dict[str, Any], PrivateStateAttr, merge_loaded]]
    skill_session: NotRequired[Annotated[str, PrivateStateAttr]]
    skill_turn: NotRequired[Annotated[str, PrivateStateAttr]]
    """Names the last message of the model, within the conversation: see `first_turn`."""


def first_turn(state: Mapping[str, Any], parent: str) -> str:
    """Return the name of the turn in which a run begins: different for each run, the same if the run is begun again.

    It is made of the messages up to the last that is not the model's work, because a history that a caller sends again
    has other ids. *parent* names the task of the graph around this one, so that two agents of one thread differ.
    """
    messages = state.get("messages") or []
    people = [number for number, message in enumerate(messages, start=1) if message.type == "human"]
    begun = people[-1] if people else 0
    said = [(message.type, message.content, getattr(message, "tool_calls", None)) for message in messages[:begun]]
    turn = digest_of(as_text([state.get("skill_turn"), parent, said]))
    for message in messages[begun:]:
        if isinstance(message, AIMessage):
            turn = next_turn(turn)
    return turn


def next_turn(turn: str) -> str:
    """Return the name of the turn after *turn*."""
    return digest_of(turn)


def active_skills(state: Mapping[str, Any], limit: int) -> dict[str, LoadedSkill]:
    """Return the active skills in the order of loading: of those loaded, the *limit* that were used last."""
    loaded: Mapping[str, LoadedSkill] = state.get("loaded_skills") or {}
    if len(loaded) <= limit:
        return dict(loaded)
    # By use, but in the order of loading: the prompt keeps its bytes.
    kept = sorted(loaded, key=lambda name: loaded[name]["used"], reverse=True)[:limit]
    return {name: loaded[name] for name in loaded if name in kept}


def next_use(state: Mapping[str, Any]) -> int:
    """Return the ``used`` counter for a skill that is used now."""
    loaded: Mapping[str, LoadedSkill] = state.get("loaded_skills") or {}
    return max((one["used"] for one in loaded.values()), default=0) + 1


def loading_answers(messages: Sequence[Any]) -> dict[int, str]:
    """Return, by their index, the messages that show a skill's instructions, each with the skill's name.

    The text itself is read: a history that a caller sent back as JSON has lost artifacts and ``additional_kwargs``.
    """
    found: dict[int, str] = {}
    calls: set[str] = set()
    for index, message in enumerate(messages):
        if isinstance(message, AIMessage):
            # Only of this message: a model may use the same ids in its next one.
            calls = {str(call["id"]) for call in message.tool_calls if call["name"] == "load_skill"}
        is_answer = isinstance(message, ToolMessage) and message.tool_call_id in calls
        if is_answer and (opening := _OPENING.match(message.text)):
            found[index] = opening["name"]
    return found


# As `render_activation` begins the instructions.
_OPENING = re.compile(r'<skill name="(?P<name>[^"]+)">')
