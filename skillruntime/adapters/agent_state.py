"""Which skills a conversation has loaded: values that an agent's state, and so its checkpoints, hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import AIMessage, ToolMessage
from typing_extensions import TypedDict

__all__ = ["LoadedSkill", "SkillState", "active_skills", "loaded_by", "loading_calls", "merge_loaded", "next_use"]


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


def loading_calls(messages: Sequence[Any]) -> set[str]:
    """Return the ids of all calls of ``load_skill`` in *messages*."""
    return {
        str(call["id"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["name"] == "load_skill"
    }


def loaded_by(message: Any, calls: set[str]) -> str | None:
    """Return the skill whose instructions *message* shows, if it answers one of *calls*; else None.

    The text itself is read: a history that a caller sent back as JSON has lost artifacts and ``additional_kwargs``.
    """
    if not isinstance(message, ToolMessage) or message.tool_call_id not in calls:
        return None
    found = _OPENING.match(message.text)
    return found["name"] if found else None


# As `render_activation` begins the instructions.
_OPENING = re.compile(r'<skill name="(?P<name>[^"]+)">')
