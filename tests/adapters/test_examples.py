"""Every example runs as a user would run it, without a key and without a network.

They stand beside the tests of the adapters, so that one process imports a framework for
both.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.in_process import run_script

EXAMPLES = Path(__file__).parents[2] / "examples"
CONFINED = {"third_party_skill.py", "langgraph_approval.py"}
"""The examples with a script that runs in a sandbox."""


pytestmark = pytest.mark.processes


@pytest.mark.parametrize(
    ("name", "expected", "framework"),
    [
        (
            "quickstart.py",
            [
                '"value": 8.04672',
                '"migrated_from": "1.x"',
                '"TRUNCATED_INPUT"',
                '"data": "papaya"',
            ],
            "",
        ),
        (
            "third_party_skill.py",
            [
                '"count":5',
                "4: It sits looking",
                '"pages\\" is not one of',
                '"code":"ACCESS_DENIED"',
                "Five of its words",
            ],
            "langchain",
        ),
        (
            "langchain_agent.py",
            [
                "'to' is a required property",
                '"value":42.164813',
                "A marathon is about 42.16 km.",
            ],
            "langchain",
        ),
        (
            "langgraph_approval.py",
            ["Asked: May unit-converter run", '"value":8.04672'],
            "langgraph",
        ),
        (
            "multi_agent.py",
            ["TOOL_NOT_AVAILABLE", "My colleague says: 0.9144 m."],
            "langchain",
        ),
        (
            "openai_sdk.py",
            ['"rule":"trailing-comma"', "A marathon is about 42.16 km."],
            "openai",
        ),
        (
            "anthropic_sdk.py",
            ['"value":42.164813', "A marathon is about 42.16 km."],
            "anthropic",
        ),
        (
            "gemini_sdk.py",
            ['"value":42.164813', "A marathon is about 42.16 km."],
            "google.genai",
        ),
        (
            "mcp_both_ways.py",
            ["tool: unit_converter", "'value': 8.04672", "imported"],
            "mcp",
        ),
        (
            "pydantic_ai_agent.py",
            ['"value":42.164813', "A marathon is about 42.16 km."],
            "pydantic_ai",
        ),
        (
            "openai_agents.py",
            ['"value":42.164813', "A marathon is about 42.16 km."],
            "agents",
        ),
        (
            "google_adk_agent.py",
            ["42.164813", "A marathon is about 42.16 km."],
            "google.adk",
        ),
    ],
)
def test_example_runs(
    name: str,
    expected: list[str],
    framework: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    """It ends well, and shows what its text promises."""
    if framework:
        needs.installed(framework)
    if name in CONFINED:
        request.getfixturevalue("some_sandbox")

    ran = run_script(EXAMPLES / name, tmp_path)

    assert ran.exit_code == 0, ran.stderr
    assert "Warning" not in ran.stderr
    for text in expected:
        assert text in ran.stdout


def test_an_example_runs_as_a_user_runs_it(tmp_path: Path) -> None:
    """In a process of its own, where a warning is an error."""
    command = [sys.executable, "-W", "error", str(EXAMPLES / "quickstart.py")]

    ran = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False
    )

    assert (ran.returncode, ran.stderr) == (0, "")
