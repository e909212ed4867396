"""Let an agent call a third-party skill, three plain argparse scripts, without writing
code for it.

The scripts are read but not imported, and each becomes a typed tool. Wrong arguments
are repaired, or refused with the parameter's name. Because the skill comes from an
untrusted source, the host is asked before each run.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import AIMessage

from skillruntime import Approval, SkillRuntime, SkillToolkit, discover
from skillruntime.testing import ScriptedChatModel, call_message

HERE = Path(__file__).parent
POEM = "The fog comes\non little cat feet.\n\nIt sits looking\nover harbor and city\n"


def approve(request: Approval) -> bool:
    """Act as a user who reviews each run and allows only the two scripts that do not
    write.
    """
    print(
        f"[host] run {request.script} of {request.skill.name} with "
        f"{dict(request.arguments)}?"
    )
    return request.name in ("text-tools/count", "text-tools/find")


def main() -> None:
    runtime = SkillRuntime(discover(HERE / "third_party_skills"), approve=approve)
    with tempfile.TemporaryDirectory() as workspace:
        Path(workspace, "poem.txt").write_text(POEM, encoding="utf-8")
        toolkit = SkillToolkit(runtime, session=runtime.session(workspace=workspace))
        model = ScriptedChatModel(
            replies=[
                call_message(("load_skill", {"name": "text-tools"})),
                call_message(
                    ("text-tools__count", {"file": "poem.txt", "at_least": "5"})
                ),
                call_message(
                    (
                        "text-tools__find",
                        {"word": "it", "file": "poem.txt", "ignore_case": "True"},
                    )
                ),
                call_message(
                    ("text-tools__count", {"file": "poem.txt", "unit": "pages"})
                ),
                call_message(("text-tools__number", {"file": "poem.txt"})),
                AIMessage(
                    "Five of its words have five letters or more, and 'it' is in "
                    "three of its lines."
                ),
            ]
        )
        agent = create_agent(
            model, toolkit.get_tools(), system_prompt=toolkit.system_prompt()
        )
        result = agent.invoke(
            {
                "messages": [
                    {
                        "role": "user",
                        "content": "How long is poem.txt, and where is 'it'?",
                    }
                ]
            }
        )
    for message in result["messages"]:
        message.pretty_print()


if __name__ == "__main__":
    main()
