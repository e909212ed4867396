"""Run a LangChain agent with skills: one middleware for ``create_agent``, with which a
bad call does not end the run.

Without arguments the model is scripted, so an API key is not needed. ``python
examples/langchain_agent.py --model openai:gpt-4o`` uses a provider's model; it needs
the provider's package and an API key.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel, call_message

HERE = Path(__file__).parent


def scripted_model() -> ScriptedChatModel:
    """Return a model that forgets a parameter, reads the error, and then sends a
    correct call.
    """
    return ScriptedChatModel(
        replies=[
            call_message(("load_skill", {"name": "unit-converter"})),
            call_message(
                (
                    "call_skill",
                    {
                        "name": "unit-converter",
                        "arguments": {"value": "26.2", "from": "mi"},
                    },
                )
            ),
            call_message(
                (
                    "call_skill",
                    {
                        "name": "unit-converter",
                        "arguments": {"value": "26.2", "from": "mi", "to": "KM"},
                    },
                )
            ),
            AIMessage("A marathon is about 42.16 km."),
        ]
    )


def main() -> None:
    runtime = SkillRuntime(discover(HERE / "skills", trusted=True))
    model: Any = sys.argv[2] if sys.argv[1:2] == ["--model"] else scripted_model()
    agent = create_agent(model, middleware=[SkillMiddleware(runtime)])

    result = agent.invoke(
        {
            "messages": [
                {
                    "role": "user",
                    "content": "How many kilometres is a marathon of 26.2 miles?",
                }
            ]
        }
    )

    for message in result["messages"]:
        message.pretty_print()


if __name__ == "__main__":
    main()
