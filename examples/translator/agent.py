"""Run a LangChain agent in its own process, for which a remote skill is an ordinary
tool.

    python agent.py SKILLS

SKILLS is a directory with a skill that has only a SKILL.md and a descriptor.json. The
model is scripted, so that this runs without an API key; any chat model can replace it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import anyio
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, ToolMessage

from skillruntime import SkillRuntime, SkillToolkit, discover
from skillruntime.remote import AddressGuard, attach_remote_skills
from skillruntime.testing import ScriptedChatModel, call_message

TEXT = (
    "Hello, world! I have a cat and a small dog. Today we drink tea and read a new "
    "book. " * 4
)


async def main(skills: Path) -> None:
    """Let the agent translate, and print the answer that it received."""
    runtime = SkillRuntime(discover(skills))
    # The server runs on this machine: internal addresses are refused unless they are
    # listed.
    attach_remote_skills(runtime, guard=AddressGuard(allowed=frozenset({"127.0.0.1"})))
    model = ScriptedChatModel(
        replies=[
            # A typical malformed argument: the parameter's name in another case. The
            # contract repairs it before the call is sent.
            call_message(("translate", {"Text": TEXT, "target_language": "de"})),
            AIMessage("There it is, in German."),
        ]
    )
    agent = create_agent(model, SkillToolkit(runtime).get_tools())
    result = await agent.ainvoke(
        {"messages": [{"role": "user", "content": f"Into German, please: {TEXT}"}]}
    )
    answer = next(
        message for message in result["messages"] if isinstance(message, ToolMessage)
    )
    envelope = json.loads(str(answer.content))
    print(
        json.dumps(
            {"envelope": envelope, "said": result["messages"][-1].content},
            ensure_ascii=False,
        )
    )


if __name__ == "__main__":
    anyio.run(main, Path(sys.argv[1]))
