"""What type checkers see of the public names: checked by mypy, never run.

A wrong type here is a wrong type in an editor of someone who uses the library.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, Literal, assert_type

from langchain_core.tools import BaseTool

from skillruntime import (
    Accepted,
    Contract,
    ErrorCode,
    Skill,
    SkillCatalog,
    SkillError,
    SkillResponse,
    SkillRuntime,
    SkillToolkit,
    discover,
    enforce,
    skill,
)


@dataclass
class Plan:
    legs: int


@skill
def plan_trip(start: str, days: int = 7) -> Plan:
    """Plan a trip."""
    return Plan(legs=days)


@skill
async def fetch(url: str) -> dict[str, int]:
    """Fetch a page."""
    return {}


def catalogs() -> None:
    catalog = discover("skills", trusted=True)
    assert_type(catalog, SkillCatalog)
    assert_type(catalog.activate("name"), Skill)
    assert_type(list(catalog), list[str])


def contracts(contract: Contract) -> None:
    accepted = contract.accept('{"a": 1}', finish_reason="stop")
    assert_type(accepted, Accepted)
    assert_type(accepted.arguments, dict[str, Any])
    assert_type(accepted.migrated_from, str | None)


def calls(runtime: SkillRuntime) -> None:
    response = runtime.call_sync("name", {"a": 1})
    assert_type(response, SkillResponse[Any])
    assert_type(response.status, Literal["success", "partial_success", "failed"])
    assert_type(response.errors, list[SkillError])
    assert_type(response.errors[0].code, ErrorCode)


def typed_calls(runtime: SkillRuntime) -> None:
    """The type of a function's result is the type of its response's data, and the
    function itself is unchanged.
    """
    assert_type(runtime.call_sync(plan_trip, {"start": "Rome"}).data, Plan | None)
    assert_type(plan_trip("Rome"), Plan)
    assert_type(runtime.call_sync(fetch, {"url": "a"}).data, dict[str, int] | None)


async def asynchronous_calls(runtime: SkillRuntime) -> None:
    assert_type((await runtime.call(plan_trip, {"start": "Rome"})).data, Plan | None)


def registered(runtime: SkillRuntime) -> None:
    @runtime.implements("plan")
    def plan(start: str) -> Plan:
        return Plan(1)

    assert_type(plan("Rome"), Plan)


def tools(runtime: SkillRuntime, tool: BaseTool) -> None:
    assert_type(SkillToolkit(runtime).get_tools(), list[BaseTool])
    enforce(tool)


def awaits(runtime: SkillRuntime) -> Awaitable[SkillResponse[Any]]:
    return runtime.call("name", {})
