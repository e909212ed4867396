"""Use skills in a loop around Anthropic's SDK: send definitions, receive tool uses,
return results.

``python examples/anthropic_sdk.py --model claude-sonnet-4-5`` needs an API key; without
``--model``, scripted replies fill the SDK's types.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from anthropic.types import Message

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.tool_formats import SkillTools, to_anthropic_result

HERE = Path(__file__).parent
SCRIPT: list[Any] = [
    ("load_skill", {"name": "unit-converter"}),
    ("unit-converter", {"value": "26.2", "from": "mi", "to": "KM"}),
    "A marathon is about 42.16 km.",
]


def scripted(messages: list[Any], **request: Any) -> Message:
    """Return the next reply of the script: a tool use or the final text."""
    said = SCRIPT[sum(message["role"] == "assistant" for message in messages)]
    if isinstance(said, str):
        block: dict[str, Any] = {"type": "text", "text": said}
    else:
        block = {"type": "tool_use", "id": "toolu_1", "name": said[0], "input": said[1]}
    usage = {"input_tokens": 0, "output_tokens": 0}
    answer = {
        "id": "1",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": [block],
    }
    return Message.model_validate(
        {**answer, "stop_reason": "tool_use", "stop_sequence": None, "usage": usage}
    )


def main() -> None:
    tools = SkillTools(SkillRuntime(discover(HERE / "skills", trusted=True)))
    create: Any = scripted
    model = "scripted"
    if sys.argv[1:2] == ["--model"]:
        from anthropic import Anthropic

        create, model = Anthropic().messages.create, sys.argv[2]
    messages: list[Any] = [
        {"role": "user", "content": "How many kilometres is a marathon of 26.2 miles?"}
    ]

    while True:
        reply = create(
            model=model,
            max_tokens=1024,
            system=tools.system_prompt,
            messages=messages,
            tools=tools.to_anthropic(),
        )
        messages.append(
            {
                "role": "assistant",
                "content": [block.model_dump() for block in reply.content],
            }
        )
        results = []
        for block in reply.content:
            if block.type == "tool_use":
                response = tools.call_sync(
                    block.name, block.input, finish_reason=reply.stop_reason
                )
                results.append(to_anthropic_result(response, block.id))
                print(f"{block.name}({block.input})\n  {results[-1]['content']}\n")
        if not results:
            break
        messages.append({"role": "user", "content": results})
    print(reply.content[-1].text)


if __name__ == "__main__":
    main()
