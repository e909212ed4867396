"""Call a skill's script and a Python function as models do. Each takes five lines, and
the calls do not raise.
"""

from __future__ import annotations

import json
from pathlib import Path

from skillruntime import Contract, SkillResponse, SkillRuntime, discover

HERE = Path(__file__).parent


def show(title: str, response: SkillResponse) -> None:
    print(f"\n{title}")
    print(json.dumps(response.to_dict(), indent=2))


def main() -> None:
    catalog = discover(HERE / "skills", trusted=True)
    print(catalog.to_prompt())

    runtime = SkillRuntime(catalog)
    show(
        "A number as text, a unit in capitals:",
        runtime.call_sync("unit-converter", '{"value": "5", "from": "MI", "to": "km"}'),
    )
    show(
        "The shape of version 1:",
        runtime.call_sync("unit-converter", {"kilometres": 42.195}),
    )
    show(
        "An unknown unit:",
        runtime.call_sync("unit-converter", {"value": 5, "from": "mile", "to": "km"}),
    )
    show(
        "Cut off in the middle:",
        runtime.call_sync("unit-converter", '{"value": 5, "from": "m'),
    )
    show(
        "The skill itself refuses:",
        runtime.call_sync("unit-converter", {"value": 5, "from": "kg", "to": "km"}),
    )

    contract = Contract.from_dict(
        {
            "version": "1.0.0",
            "input": {
                "type": "object",
                "required": ["words"],
                "additionalProperties": False,
                "properties": {
                    "words": {
                        "type": "array",
                        "items": {"type": "string"},
                        "minItems": 1,
                    }
                },
            },
        }
    )

    @runtime.implements("longest-word", contract=contract)
    def longest_word(arguments: dict[str, list[str]]) -> str:
        return max(arguments["words"], key=len)

    show(
        "A Python function, and a list in a text:",
        runtime.call_sync("longest-word", {"words": "['fig', 'papaya']"}),
    )


if __name__ == "__main__":
    main()
