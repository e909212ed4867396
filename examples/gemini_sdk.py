"""Use skills in a loop around Google's SDK: send declarations, receive function calls,
return results.

``python examples/gemini_sdk.py --model gemini-2.5-flash`` needs an API key; without
``--model``, scripted replies fill the SDK's types.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from google.genai import types

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.tool_formats import SkillTools, to_gemini_result

HERE = Path(__file__).parent
SCRIPT: list[Any] = [
    ("load_skill", {"name": "unit-converter"}),
    ("unit-converter", {"value": "26.2", "from": "mi", "to": "KM"}),
    "A marathon is about 42.16 km.",
]


def scripted(
    contents: list[types.Content], **request: Any
) -> types.GenerateContentResponse:
    """Return the next reply of the script: a function call or the final text."""
    said = SCRIPT[sum(content.role == "model" for content in contents)]
    part = (
        {"text": said}
        if isinstance(said, str)
        else {"function_call": {"name": said[0], "args": said[1]}}
    )
    candidate = {"content": {"role": "model", "parts": [part]}, "finish_reason": "STOP"}
    return types.GenerateContentResponse.model_validate({"candidates": [candidate]})


def main() -> None:
    tools = SkillTools(SkillRuntime(discover(HERE / "skills", trusted=True)))
    generate: Any = scripted
    model = "scripted"
    if sys.argv[1:2] == ["--model"]:
        from google import genai

        generate, model = genai.Client().models.generate_content, sys.argv[2]
    config = types.GenerateContentConfig(
        system_instruction=tools.system_prompt,
        tools=[types.Tool.model_validate(each) for each in tools.to_gemini()],
    )
    question = "How many kilometres is a marathon of 26.2 miles?"
    contents = [types.Content(role="user", parts=[types.Part(text=question)])]

    while True:
        candidate = generate(model=model, contents=contents, config=config).candidates[
            0
        ]
        contents.append(candidate.content)
        results = []
        for call in [
            part.function_call for part in candidate.content.parts if part.function_call
        ]:
            response = tools.call_sync(
                call.name, call.args, finish_reason=candidate.finish_reason.value
            )
            results.append(
                types.Part.model_validate(
                    to_gemini_result(response, call.name, call_id=call.id)
                )
            )
            print(f"{call.name}({call.args})\n  {response.to_json()}\n")
        if not results:
            break
        contents.append(types.Content(role="user", parts=results))
    print(candidate.content.parts[-1].text)


if __name__ == "__main__":
    main()
