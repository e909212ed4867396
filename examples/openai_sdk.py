"""Use skills in a loop around OpenAI's SDK: send definitions, receive raw arguments,
return answers.

``python examples/openai_sdk.py --model gpt-4o`` needs an API key; without ``--model``,
scripted replies fill the SDK's types.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from openai.types.chat import ChatCompletion

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.tool_formats import SkillTools, to_openai_result

HERE = Path(__file__).parent
SCRIPT: list[Any] = [
    ("load_skill", '{"name": "unit-converter"}'),
    ("unit-converter", '{"value": "26.2", "from": "mi", "to": "km",}'),
    "A marathon is about 42.16 km.",
]


def scripted(messages: list[Any], **request: Any) -> ChatCompletion:
    """Return the next reply of the script: a call or the final text."""
    said = SCRIPT[sum(message["role"] == "assistant" for message in messages)]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": said if isinstance(said, str) else None,
    }
    if not isinstance(said, str):
        function = {"name": said[0], "arguments": said[1]}
        message["tool_calls"] = [
            {"id": "call_1", "type": "function", "function": function}
        ]
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
    completion = {
        "id": "1",
        "object": "chat.completion",
        "created": 0,
        "model": "scripted",
        "choices": [choice],
    }
    return ChatCompletion.model_validate(completion)


def main() -> None:
    tools = SkillTools(SkillRuntime(discover(HERE / "skills", trusted=True)))
    create: Any = scripted
    model = "scripted"
    if sys.argv[1:2] == ["--model"]:
        from openai import OpenAI

        create, model = OpenAI().chat.completions.create, sys.argv[2]
    messages: list[Any] = [
        {"role": "system", "content": tools.system_prompt},
        {"role": "user", "content": "How many kilometres is a marathon of 26.2 miles?"},
    ]

    while True:
        choice = create(
            model=model, messages=messages, tools=tools.to_openai()
        ).choices[0]
        messages.append(choice.message.model_dump(exclude_none=True))
        if not choice.message.tool_calls:
            break
        for call in choice.message.tool_calls:
            response = tools.call_sync(
                call.function.name,
                call.function.arguments,
                finish_reason=choice.finish_reason,
            )
            messages.append(to_openai_result(response, call.id))
            print(
                f"{call.function.name}({call.function.arguments})\n"
                f"  {messages[-1]['content']}\n"
            )
    print(choice.message.content)


if __name__ == "__main__":
    main()
