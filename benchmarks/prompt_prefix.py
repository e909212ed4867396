"""How many bytes of each request a provider's prompt cache can keep: a fixed tool list
next to one tool a skill.

``python -m benchmarks.prompt_prefix [--turns 20] [--json]``. One scripted conversation
with the bundled skills loads three of them and calls their tools, once with each tool
list of the middleware. A request is written in the order in which providers cache it:
tools, system message, messages. What equals the request before it is a cache read; the
rest is billed in full. ``weighted`` counts a cached byte as a tenth of a full one, as
Anthropic bills it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.utils.function_calling import convert_to_openai_tool

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel, call_message

SKILLS = Path(__file__).parents[1] / "skills"
CACHED = 0.1
"""What a cached byte costs next to a full one."""

CALLS: list[tuple[str, dict[str, Any]]] = [
    ("pdf-processing/extract", {"path": "report.pdf"}),
    ("data-analysis/summary", {"path": "sales.csv"}),
    ("daily-news-digest", {"topics": ["solar power"], "max_articles_per_topic": 3}),
]
RESULT = {
    "status": "success",
    "rows": [
        {"n": number, "text": "about as long as a real result"} for number in range(12)
    ],
}


class Recording(ScriptedChatModel):
    """Remembers every request as a provider caches it."""

    requests: list[str]
    definitions: str = ""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """Remember the definitions."""
        self.definitions = json.dumps([convert_to_openai_tool(tool) for tool in tools])
        return super().bind_tools(tools, **kwargs)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> Any:
        self.requests.append(self.definitions + "".join(map(written, messages)))
        return super()._generate(messages, *args, **kwargs)


def written(message: BaseMessage) -> str:
    """Return a message as its text and its calls."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return json.dumps({"role": message.type, "content": message.text, "calls": calls})


def script(turns: int, mode: str) -> list[AIMessage]:
    """Return what the model says: three loads, spread over the conversation, and calls
    of what is loaded.
    """
    replies: list[AIMessage] = []
    loads = {turns * part // 10: index for index, part in enumerate((0, 3, 6))}
    loaded = 0
    for turn in range(turns - 1):
        name, arguments = CALLS[loaded]
        if turn in loads:
            loaded = loads[turn]
            call = ("load_skill", {"name": CALLS[loaded][0].partition("/")[0]})
        elif mode == "fixed":
            call = ("call_skill", {"name": name, "arguments": arguments})
        else:
            call = (name.replace("/", "__"), arguments)
        replies.append(call_message(call, turn=turn))
    return [*replies, AIMessage("Done.")]


def measure(turns: int, mode: Any) -> dict[str, Any]:
    """Return the bytes of one conversation: all, cached, and in full."""
    runtime = SkillRuntime(discover(SKILLS, trusted=True))
    for name in runtime.callable_names():
        promised = {
            key: value
            for key, value in runtime.contract(name).to_dict().items()
            if key != "output"
        }
        runtime.implements(name, contract=promised)(lambda arguments: RESULT)
    model = Recording(replies=script(turns, mode), requests=[])
    agent = create_agent(
        model,
        middleware=[SkillMiddleware(runtime, tools=mode, refresh=False)],
        system_prompt="Help.",
    )
    agent.invoke(
        {"messages": [HumanMessage("Read the report, then the sales, then the news.")]},
        {"recursion_limit": 99},
    )
    sent = sum(map(len, model.requests))
    pairs = [*zip(model.requests, model.requests[1:], strict=False)]
    same = [unchanged(before, after) for before, after in pairs]
    cached = sum(same)
    broken = sum(
        length < len(before) for length, (before, _) in zip(same, pairs, strict=True)
    )
    return {
        "tools": mode,
        "requests": len(model.requests),
        "sent": sent,
        "cached": cached,
        "in_full": sent - cached,
        "weighted": round(sent - cached + CACHED * cached),
        "broken_prefixes": broken,
        "last_request": len(model.requests[-1]),
    }


def unchanged(before: str, after: str) -> int:
    """Return how many characters *after* begins with that *before* begins with too."""
    for position, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return position
    return min(len(before), len(after))


def malformed_call(mode: Any) -> dict[str, int]:
    """Return what one malformed call adds to a conversation: the refused call, its
    answer, and the next request.
    """
    row = measure(20, mode)
    runtime = SkillRuntime(discover(SKILLS, trusted=True))
    answer = runtime.call_sync(
        "pdf-processing/extract", {"file": "report.pdf"}
    ).to_json()
    call = json.dumps(CALLS[0])
    full = len(answer) + len(call)
    return {"in_full": full, "weighted": round(full + CACHED * row["last_request"] / 2)}


def main() -> None:
    """Print a row for each tool list."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--turns", type=int, default=20, help="model calls of the conversation"
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [measure(options.turns, mode) for mode in ("fixed", "typed")]
    malformed = malformed_call("fixed")
    saved = rows[1]["weighted"] - rows[0]["weighted"]
    if options.json:
        print(
            json.dumps(
                {"rows": rows, "malformed_call": malformed, "saved_weighted": saved},
                indent=2,
            )
        )
        return
    print(
        f"{'tools':<7} {'requests':>8} {'sent':>10} {'cached':>10} {'in full':>10} "
        f"{'weighted':>10} {'prefix broken':>14}"
    )
    for row in rows:
        print(
            f"{row['tools']:<7} {row['requests']:>8} {row['sent']:>10,} "
            f"{row['cached']:>10,} {row['in_full']:>10,} {row['weighted']:>10,} "
            f"{row['broken_prefixes']:>14}"
        )
    print(
        f"one malformed call: {malformed['in_full']:,} bytes in full, "
        f"{malformed['weighted']:,} weighted"
    )
    print(
        f"the fixed list is cheaper up to {saved // malformed['weighted']} more "
        "malformed calls a conversation"
    )


if __name__ == "__main__":
    main()
