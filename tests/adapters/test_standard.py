"""LangChain's own standard tests for tools, for every tool of this library."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from skillruntime.adapters.langchain import SkillToolkit, enforce
from skillruntime.catalog import discover
from skillruntime.runtime import SkillRuntime
from skillruntime.tokens import TokenLimits
from tests.adapters.conftest import SKILLS

pytestmark = pytest.mark.processes

EXAMPLES: dict[str, dict[str, Any]] = {
    "load_skill": {"name": "code-review"},
    "read_skill_resource": {"name": "pdf-processing", "path": "references/forms.md"},
    "write_skill_input": {"path": "in.csv", "text": "a,b", "overwrite": True},
    "call_skill": {
        "name": "pdf-processing/extract",
        "arguments": {"path": "missing.pdf"},
    },
    "daily-news-digest": {"topics": ["AI regulation"], "file_path": "digest.md"},
    "code-review__changed-lines": {"diff": ""},
    "data-analysis__query": {"path": "data.csv", "values": ["count()"]},
    "data-analysis__summary": {"path": "data.csv"},
    "pdf-processing__extract": {"path": "missing.pdf"},
    "pdf-processing__fill-form": {"path": "form.pdf", "fields": {"name": "Ada"}},
    "pdf-processing__merge": {"paths": ["a.pdf", "b.pdf"]},
    "pdf-processing__render": {"path": "missing.pdf"},
    "search_skills": {"query": "pdf"},
    "multiply": {"a": 2, "b": 3},
}


@tool
def multiply(a: int, b: int) -> int:
    """Multiply."""
    return a * b


def all_tools() -> list[BaseTool]:
    """Every tool of both styles, and an enforced one. The news skill reads a feed in
    the workspace, not the network.
    """
    runtime = SkillRuntime(discover(SKILLS, trusted=True))
    session = runtime.session()
    (session.workspace.directory / "news_feeds.json").write_text(
        '{"feeds": ["feed.xml"]}'
    )
    (session.workspace.directory / "feed.xml").write_text(
        '<rss version="2.0"><channel><title>T</title></channel></rss>'
    )
    typed = SkillToolkit(runtime, session=session).get_tools()
    generic = SkillToolkit(runtime, session=session, style="generic").get_tools()
    tight = SkillToolkit(
        runtime,
        session=runtime.session(limits=TokenLimits(page_tokens=500)),
        catalog_tokens=40,
    )
    extra = [found for found in tight.get_tools() if found.name == "search_skills"]
    return [*typed, generic[-1], *extra, enforce(multiply)]


TOOLS = {found.name: found for found in all_tools()}


class Standard:
    """What both suites ask for, given by the parametrised name."""

    @pytest.fixture(autouse=True, params=sorted(TOOLS))
    def chosen(self, request: pytest.FixtureRequest) -> None:
        """Run the suite for one tool."""
        self.name = request.param

    @property
    def tool_constructor(self) -> BaseTool:
        """The tool itself."""
        return TOOLS[self.name]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        """Arguments that fit its schema."""
        return EXAMPLES[self.name]


class TestUnit(Standard, ToolsUnitTests):
    """LangChain's unit suite."""


@pytest.mark.anyio
class TestIntegration(Standard, ToolsIntegrationTests):
    """LangChain's integration suite."""


def test_there_is_an_example_for_every_tool() -> None:
    """No tool goes untested."""
    assert set(TOOLS) == set(EXAMPLES)
