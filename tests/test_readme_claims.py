"""Each claim of the README names the test or the benchmark that shows it; the examples
are run by test_documents.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skillruntime.cli import group

ROOT = Path(__file__).parents[1]

CLAIMS = {
    "A call with one meaning is repaired; one that would take a guess is refused": (
        "benchmarks/coercion.py"
    ),
    "or install and run the tests": "tests/test_documents.py",
    "The prompt holds each skill's name and description": (
        "tests/adapters/test_agent_middleware.py"
        "::test_instructions_appear_exactly_once_even_when_loaded_twice"
    ),
    "Every call is answered exactly once": (
        "tests/adapters/test_hostile_threads.py"
        "::test_each_call_of_a_thread_with_checkpoints_is_answered_once"
    ),
    "a malformed one never ends the run": (
        "tests/adapters/test_hostile_loop.py::test_the_run_never_ends_by_exception"
    ),
    "have pages of their own: LangChain, OpenAI, Anthropic, Gemini, MCP, pydantic-ai": (
        "tests/adapters/test_every_adapter.py::test_every_kind_of_skill_is_offered_and_called"
    ),
    "`enforce(tool)` protects a tool that you already have": (
        "tests/adapters/test_enforced_tool.py"
    ),
    "any MCP server": "benchmarks/mcp_proxy.py",
    "reads each skill's name and description and nothing else": (
        "tests/catalog/test_discovery.py::test_a_huge_file_is_read_only_at_its_beginning"
    ),
    "A broken skill does not affect the others": (
        "tests/catalog/test_discovery.py::test_a_skill_without_description_is_skipped_with_an_error"
    ),
    "Arguments written for an older version are migrated": (
        "tests/contract/test_contract.py"
        "::test_arguments_of_older_versions_are_coerced_then_migrated"
    ),
    "JSON on stdin, JSON on stdout, no shell, ended with all its processes at its deadline": (
        "tests/runtime/test_scripts.py::test_a_script_that_hangs_is_killed_at_its_deadline"
    ),
    "run only in a sandbox that passed its self-test": (
        "tests/runtime/test_sandbox.py::test_the_self_test_passes"
    ),
    "with only what it grants": (
        "tests/runtime/test_grants.py::test_the_network_is_granted_by_the_host"
    ),
    "from its source, without running it": (
        "tests/derive/test_derive.py::test_the_reader_imports_and_evaluates_nothing"
    ),
    "Tokens are counted exactly and offline": (
        "tests/tokens/test_report.py::test_it_works_with_the_network_unplugged"
    ),
    "a skill that works, with its test": "tests/cli/test_new.py",
    "Every command that answers takes `--json`": (
        "tests/test_readme_claims.py::test_every_command_that_answers_takes_json"
    ),
    "data is on stdout, everything else on stderr": (
        "tests/cli/test_commands.py::test_call_prints_data_on_stdout_and_messages_on_stderr"
    ),
    "Exit codes: 0 success, 1 failure, 2 wrong usage, 3 try again later": (
        "tests/cli/test_output.py"
    ),
    "malformed calls repaired, of 1,850": "benchmarks/coercion.py",
    "wrong values returned, of 3,961 calls": "benchmarks/coercion.py",
    "accepting a valid mapping": "benchmarks/accept_shapes.py",
    "a whole call, `SkillTool.invoke`": "benchmarks/call_overhead.py",
    "cold start, 10,000 skills": "benchmarks/load.py",
    "the skills in 300 installed packages": "benchmarks/load.py",
    "the right skill ranked first, for": "benchmarks/search_requests.py",
    "a request with 705 real skills": "benchmarks/token_budget.py",
    "hostile scripts contained, of 164": "benchmarks/hostile_peers",
    "`import skillruntime` imports none of them": (
        "tests/test_architecture.py::test_importing_the_package_loads_no_heavy_library"
    ),
}


@pytest.mark.parametrize(("claim", "shown_by"), CLAIMS.items())
def test_a_claim_of_the_readme_is_shown(claim: str, shown_by: str) -> None:
    """The sentence is in the README, and what shows it exists."""
    file, _, test = shown_by.partition("::")

    assert claim in (ROOT / "README.md").read_text("utf-8")
    assert (ROOT / file).exists()
    assert not test or f"def {test}(" in (ROOT / file).read_text("utf-8")


RATIO = re.compile(r"\| *(\d+(?:\.\d+)? x(?: \([\d.]+ to [\d.]+\))?) *\|")


def test_a_ratio_of_the_readme_is_that_of_the_page_of_benchmarks() -> None:
    """A figure that both state is the same, with its range."""
    readme = (ROOT / "README.md").read_text("utf-8")
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    ratios = RATIO.findall(readme)

    assert len(ratios) >= 4
    for ratio in ratios:
        assert re.search(rf"(?<![\d.]){re.escape(ratio)}", page), ratio


# They run until they are stopped.
WITHOUT_JSON = {"serve", "mcp-proxy"}


def test_every_command_that_answers_takes_json() -> None:
    """A program reads the answer of every command in the same way."""
    commands = {
        name: group.get_command(None, name) for name in group.list_commands(None)
    }  # type: ignore[arg-type]

    without = {
        name
        for name, command in commands.items()
        if not any("--json" in each.opts for each in command.params)
    }

    assert without <= WITHOUT_JSON | {
        name for name, command in commands.items() if hasattr(command, "commands")
    }
