"""Run two agents with different skills: a lead that delegates, and a specialist. Only
the specialist can convert units.

The lead cannot see the specialist's skills: ``catalog.select`` returns the view of one
agent.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import tool

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel, call_message

HERE = Path(__file__).parent


def model(*replies: AIMessage) -> Any:
    """Return the model named on the command line, or one that replays *replies*."""
    return (
        sys.argv[2]
        if sys.argv[1:2] == ["--model"]
        else ScriptedChatModel(replies=list(replies))
    )


def main() -> None:
    catalog = discover(HERE / "skills", HERE.parent / "skills", trusted=True)
    converting = SkillMiddleware(
        SkillRuntime(catalog.select(include=["unit-converter"]))
    )
    leading = SkillMiddleware(
        SkillRuntime(catalog.select(include=["code-review", "daily-*"])),
        catch_errors=True,
    )
    specialist = create_agent(
        model(
            call_message(("load_skill", {"name": "unit-converter"})),
            call_message(
                (
                    "call_skill",
                    {
                        "name": "unit-converter",
                        "arguments": {"value": 3, "from": "ft", "to": "m"},
                    },
                )
            ),
            AIMessage("3 ft are 0.9144 m."),
        ),
        middleware=[converting],
    )

    @tool
    def ask_the_converter(question: str) -> str:
        """Ask a second agent that converts units."""
        return str(
            specialist.invoke({"messages": [("user", question)]})["messages"][
                -1
            ].content
        )

    lead = create_agent(
        model(
            call_message(("unit-converter", {"value": 3, "from": "ft", "to": "m"})),
            call_message(
                ("ask_the_converter", {"question": "How many metres are 3 feet?"})
            ),
            AIMessage("My colleague says: 0.9144 m."),
        ),
        [ask_the_converter],
        middleware=[leading],
    )

    for message in lead.invoke({"messages": [("user", "How many metres are 3 feet?")]})[
        "messages"
    ]:
        message.pretty_print()


if __name__ == "__main__":
    main()
