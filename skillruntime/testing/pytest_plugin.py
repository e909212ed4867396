"""A pytest plugin: ``pytest --skills DIRECTORY`` tests the skills there like
``skillruntime test``, with one test for each skill.

pytest imports this module at every start if skillruntime is installed, so it imports no
other module of the library until ``--skills`` is given, and defines no fixture.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

__all__ = ["SkillItem", "pytest_addoption", "pytest_collection_modifyitems"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the one option."""
    parser.getgroup("skillruntime").addoption(
        "--skills",
        action="append",
        metavar="DIRECTORY",
        help="Test the skills in this directory from their contracts, in a sandbox, in "
        "addition to the other tests; repeatable. What cannot be tested is skipped.",
    )


@pytest.hookimpl(tryfirst=True)  # so that -k selects among them too
def pytest_collection_modifyitems(
    session: pytest.Session, config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Add a test for each skill in the directories of ``--skills``."""
    for directory in config.getoption("--skills") or ():
        if not Path(directory).is_dir():
            raise pytest.UsageError(f"--skills {directory}: it is not a directory")
        from skillruntime import discover

        catalog = discover(directory)
        if not catalog:
            raise pytest.UsageError(f"--skills {directory}: it has no skills")
        for name, metadata in catalog.items():
            items.append(
                SkillItem.from_parent(
                    session, name=f"skill {name}", directory=metadata.directory
                )
            )


class SkillItem(pytest.Item):
    """The test of one skill."""

    def __init__(self, *, directory: Path, **options: Any) -> None:
        super().__init__(**options)
        self.directory = directory

    def runtest(self) -> None:
        """Test the skill; skip it if something is missing on this machine."""
        from skillruntime.errors import AccessDeniedError
        from skillruntime.testing import run_skill_tests

        try:
            report = run_skill_tests(self.directory)
        except AccessDeniedError as error:
            raise SkillFailure(str(error)) from None
        problems: list[str] = []
        hindrances: list[str] = []
        for skill in report.skills:
            for result in skill.callables:
                for failure in result.failures:
                    line = f"{result.name}: [{failure.check}] {failure.message}"
                    problems.append(f"{line}\n  {failure.command}")
                for each in result.hindrances:
                    line = f"{result.name}: {each.reason}; {each.remedy}"
                    hindrances.append(line)
        if problems:
            raise SkillFailure("\n".join(problems))
        if report.count("not testable"):
            pytest.skip("; ".join(hindrances))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        """Return the failures of the skill, without a traceback of this library."""
        if isinstance(excinfo.value, SkillFailure):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return the path of the skill, and the name of the test."""
        return self.directory / "SKILL.md", None, self.name


class SkillFailure(Exception):  # noqa: N818 - a failed test, not an error
    """A skill failed its test; the message lists the failures."""
