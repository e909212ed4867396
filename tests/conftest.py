"""What every test shares: one asynchronous backend unless a test asks for more, and quiet, repeatable properties."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, settings

from skillruntime import ErrorCode, SkillResponse
from tests.proportion import directions

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("repeatable")


IS_BASE = "SKILLRUNTIME_TESTS_BASE" in os.environ
"""Whether the tests run in a plain install: what needs an extra is skipped then, and by its error alone."""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    if IS_BASE and report.failed and "ModuleNotFoundError" in str(report.longrepr):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, "needs an extra")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    try:
        return (yield)
    except ModuleNotFoundError as error:
        if IS_BASE and error.name is not None and not error.name.startswith("skillruntime"):
            pytest.skip(f"needs {error.name}")
        raise


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


ENVELOPE = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["success", "partial_success", "failed"]},
        "data": True,
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["code", "message", "recoverable"],
                "additionalProperties": False,
                "properties": {
                    "code": {"enum": [code.value for code in ErrorCode]},
                    "message": {"type": "string", "minLength": 1},
                    "recoverable": {"type": "boolean"},
                    "details": {"type": "object", "minProperties": 1},
                    "suggested_action": {"type": "string", "minLength": 1},
                },
            },
        },
        "metadata": {"type": "object", "minProperties": 1},
    },
    "if": {"properties": {"status": {"const": "failed"}}},
    "then": {"required": ["errors"]},
}
"""The envelope of the contract document (31.4), as a schema: every response in a test is validated against it."""

_judge = jsonschema.Draft202012Validator(ENVELOPE)
_to_dict = SkillResponse.to_dict


@pytest.fixture(autouse=True)
def every_envelope_follows_the_contract_document(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every response of every test has the form of 31.4."""

    def to_dict(response: SkillResponse) -> dict[str, Any]:
        document = _to_dict(response)
        _judge.validate(document)
        return document

    monkeypatch.setattr(SkillResponse, "to_dict", to_dict)
    yield


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the measures that are wanted lower and not tested."""
    terminalreporter.write_line(directions())
