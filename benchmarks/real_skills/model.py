"""Scripted models that follow what they were answered: they fill in a path that an
answer gave, as a model copies it, or decide the next call by the last answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import PurePath
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from skillruntime.testing import ScriptedChatModel, call_message

_PLACE = re.compile(r"\{(inputs|[a-z]+:[^{}\s\"']+)\}")


def filled(value: Any, word: Callable[[str], str | None]) -> Any:
    """Return *value* with each place in its texts replaced by ``word(place)``; a place
    without a word stays.
    """
    if isinstance(value, str):
        return _PLACE.sub(lambda found: word(found[1]) or found[0], value)
    if isinstance(value, dict):
        return {key: filled(item, word) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, word) for item in value]
    return value


class FollowingModel(ScriptedChatModel):
    """Answer with *replies*, whose ``{directory:SKILL}`` and ``{made:NAME}`` are filled
    from what the model has read until then.
    """

    def _generate(
        self, messages: list[BaseMessage], *arguments: Any, **options: Any
    ) -> Any:
        turn = len(self.received)
        if turn < len(self.replies):
            reply = self.replies[turn]
            texts = [message.text for message in messages]
            calls = [
                {
                    **call,
                    "args": filled(call["args"], lambda place: _shown(place, texts)),
                }
                for call in reply.tool_calls
            ]
            self.replies[turn] = reply.model_copy(update={"tool_calls": calls})
        return super()._generate(messages, *arguments, **options)


def _shown(place: str, texts: Sequence[str]) -> str | None:
    """Return what *texts*, the last first, say for a place."""
    kind, _, name = place.partition(":")
    for text in reversed(texts):
        if kind == "directory":
            paths = re.findall(r'^Directory: ([^\n\\"]+)', text, re.MULTILINE)
        elif kind == "made":
            paths = re.findall(r'"path": ?"([^"\\]+)"', text)
        else:
            return None
        for path in paths:
            if PurePath(path.strip("'")).name == name:
                return str(path)
    return None


class SteppingModel(ScriptedChatModel):
    """Make the calls that ``steps`` yields, a generator that is sent each answer."""

    replies: list[AIMessage] = Field(default_factory=list)
    steps: Any

    def _generate(
        self, messages: list[BaseMessage], *arguments: Any, **options: Any
    ) -> ChatResult:
        self.received.append(list(messages))
        answer = messages[-1] if messages[-1].type == "tool" else None
        try:
            reply = call_message(self.steps.send(answer))
        except StopIteration:
            reply = AIMessage("done")
        return ChatResult(generations=[ChatGeneration(message=reply)])
