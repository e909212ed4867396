"""Build your own LangGraph graph, in which a person approves an untrusted skill's
script, even across restarts.

The skills are not trusted, so their scripts run only if ``approve`` says so. It asks
with LangGraph's ``interrupt``. The answer comes later, on the same LangGraph thread,
which is restored from the checkpoint. The answer is the digest of the approved files,
so that the script does not run if they have changed meanwhile. ``--model
openai:gpt-4o`` uses a real model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph.types import Command, interrupt

from skillruntime import SkillRuntime, SkillToolkit, discover
from skillruntime.runtime import Approval
from skillruntime.testing import ScriptedChatModel, call_message

HERE = Path(__file__).parent


def approve(request: Approval) -> str:
    """Ask a person and wait without a time limit; return the digest of the approved
    files.
    """
    question = (
        f"May {request.name} run {request.script} with {dict(request.arguments)}?"
    )
    return str(interrupt({"question": question, "digest": request.digest}))


def main() -> None:
    runtime = SkillRuntime(discover(HERE / "skills"), approve=approve)
    toolkit = SkillToolkit(runtime)
    tools = toolkit.get_tools()
    call = call_message(("unit-converter", {"value": 5, "from": "mi", "to": "km"}))
    scripted = ScriptedChatModel(
        replies=[call, AIMessage("Five miles are about 8.05 km.")]
    )
    chosen: Any = (
        init_chat_model(sys.argv[2]) if sys.argv[1:2] == ["--model"] else scripted
    )
    model = chosen.bind_tools(tools) | toolkit.put_names_right

    def answer(state: MessagesState) -> dict[str, Any]:
        return {
            "messages": [
                model.invoke([("system", toolkit.system_prompt()), *state["messages"]])
            ]
        }

    graph = StateGraph(MessagesState)
    graph.add_node("model", answer)
    graph.add_node("tools", ToolNode(tools))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", tools_condition)
    graph.add_edge("tools", "model")
    agent = graph.compile(checkpointer=InMemorySaver())
    thread: Any = {"configurable": {"thread_id": "marathon"}}

    stopped = agent.invoke({"messages": [("user", "How far is five miles?")]}, thread)
    asked = stopped["__interrupt__"][0].value
    print("Asked:", asked["question"])
    result = agent.invoke(Command(resume=asked["digest"]), thread)
    print(result["messages"][-2].content)
    print(result["messages"][-1].content)


if __name__ == "__main__":
    main()
