"""What a model should do after a skill failed for a reason of its own."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime import SkillRuntime, ToolExecutionError


@pytest.mark.parametrize(
    ("message", "step"),
    [
        (
            "no sheet 'May' in path",
            "Change 'path', or tell the user what the message says",
        ),
        (
            "Is a directory: 'a.xlsx'",
            "Change 'path', or tell the user what the message says",
        ),
        ("the printer is out of paper", "Tell the user what the message says"),
        ("True, page 1 of 21 was printed", "Tell the user what the message says"),
    ],
)
def test_the_argument_that_a_failure_names_is_named(message: str, step: str) -> None:
    """So that a model changes that one, and nothing where none is named."""
    runtime = SkillRuntime()
    schema = {
        "type": "object",
        "properties": {"path": {}, "copies": {}, "is_draft": {}},
    }

    @runtime.implements("print", contract={"input": schema})
    def fail(arguments: dict[str, Any]) -> None:
        raise ToolExecutionError(message)

    arguments = {"path": "a.xlsx", "copies": 1, "is_draft": True}
    assert runtime.call_sync("print", arguments).errors[0].suggested_action == step
