"""Changes to a schema that a log speaks for:
`skillruntime/adapters/mcp_proxy/reports/suggestions.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from skillruntime.adapters.mcp_proxy import open_log
from skillruntime.adapters.mcp_proxy.reports.report import read_report
from skillruntime.adapters.mcp_proxy.reports.suggestions import Suggestion, suggestions
from skillruntime.cli import group
from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.mcp_proxy.messages import call, known

TOOL = {
    "name": "find",
    "inputSchema": {
        "type": "object",
        "required": ["path", "depth"],
        "properties": {
            "path": {"type": "string", "description": "Where to look."},
            "depth": {"type": "integer", "default": 3},
            "limit": {"type": "integer", "maximum": 10},
            "tags": {"type": "array", "items": {"type": "string"}},
            "mode": {"anyOf": [{"const": "fast"}, {"const": "full"}]},
            "order": {"type": "string", "pattern": "^(up|down)$"},
            "target": {"type": "string"},
            "unit": {"enum": ["km", "mi"]},
        },
    },
}
VALID = {"path": "a", "depth": 1}


def suggested(
    tmp_path: Path, *calls: dict[str, Any], times: int = 3, tool: Any = TOOL
) -> list[Suggestion]:
    """Return what is proposed after each of *calls* came so many times."""
    session = known(tool, log=open_log(tmp_path / "log"))
    for number in range(times):
        for index, arguments in enumerate(calls):
            session.from_client(
                call(json.dumps(arguments), id=str(100 * number + index), name="find")
            )
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    return suggestions(read_report(lines))


def accepts(document: dict[str, Any], arguments: dict[str, Any]) -> bool:
    try:
        Contract.from_dict(document).accept(arguments, policy="strict")
    except SkillInputError:
        return False
    return True


# What is planted: the call, and of the one change that is proposed for it the kind, the
# place, and what differs.
PLANTED: list[tuple[str, dict[str, Any], str, str, Any]] = [
    (
        "another name",
        {"file_path": "a", "depth": 1},
        "alias",
        "/path",
        {"path": ["file_path"]},
    ),
    ("a short name", {"pth": "a", "depth": 1}, "alias", "/path", {"path": ["pth"]}),
    (
        "null",
        {**VALID, "limit": None},
        "nullable",
        "/limit",
        [{"type": "integer", "maximum": 10}, {"type": "null"}],
    ),
    ("a default left out", {"path": "a"}, "default", "/depth", ["path"]),
    ("another constant", {**VALID, "mode": "Fast"}, "enum", "/mode", ["fast", "full"]),
    (
        "none of the constants",
        {**VALID, "mode": "slow"},
        "enum",
        "/mode",
        ["fast", "full"],
    ),
    (
        "not of the pattern",
        {**VALID, "order": "left"},
        "description",
        "/order",
        "A string that matches ^(up|down)$.",
    ),
    (
        "left out",
        {"depth": 1},
        "description",
        "/path",
        "Where to look. Required: a string.",
    ),
    (
        "a list in a string",
        {**VALID, "tags": "['a', 'b']"},
        "description",
        "/tags",
        "An array, each a string, not inside a string.",
    ),
    (
        "one of a list",
        {**VALID, "tags": "a"},
        "description",
        "/tags",
        "An array, each a string, also for a single item.",
    ),
    (
        "a member of an enum",
        {**VALID, "unit": "KM"},
        "description",
        "/unit",
        'One of "km", "mi", written exactly so.',
    ),
    (
        "another type",
        {**VALID, "limit": "many"},
        "description",
        "/limit",
        "An integer, at most 10.",
    ),
]


@pytest.mark.parametrize(
    ("sent", "kind", "path", "new"),
    [row[1:] for row in PLANTED],
    ids=[row[0] for row in PLANTED],
)
def test_one_change_is_proposed_for_a_planted_fault(
    sent: dict[str, Any], kind: str, path: str, new: Any, tmp_path: Path
) -> None:
    """With the calls that speak for it; what is left out and what has another shape are
    not mixed up.
    """
    [change] = suggested(tmp_path, sent)

    assert (change.kind, change.tool, change.path, change.calls) == (
        kind,
        "find",
        path,
        3,
    )
    assert change.before == {"input": TOOL["inputSchema"]}
    part = change.after["input"]["properties"][path[1:]]
    found = {
        "alias": change.after.get("aliases"),
        "nullable": part.get("anyOf"),
        "default": change.after["input"]["required"],
        "enum": part.get("enum"),
        "description": part.get("description"),
    }
    assert found[kind] == new


@pytest.mark.parametrize(
    "sent", [row[1] for row in PLANTED], ids=[row[0] for row in PLANTED]
)
def test_no_proposal_does_harm(sent: dict[str, Any], tmp_path: Path) -> None:
    """What was valid is valid, and what was wrong is wrong, except the null and the
    name that are proposed.
    """
    valid = [
        VALID,
        {**VALID, "tags": []},
        {**VALID, "mode": "full", "order": "up"},
        {**VALID, "unit": "km", "limit": 10},
    ]
    wrong = [
        {"depth": 1},
        {**VALID, "limit": 11},
        {**VALID, "limit": "5"},
        {**VALID, "mode": "slow"},
        {**VALID, "order": "left"},
        {**VALID, "tags": "a"},
        {"path": None, "depth": 1},
    ]

    for change in suggested(tmp_path, sent):
        assert all(accepts(change.after, each) for each in valid)
        assert not any(accepts(change.after, each) for each in wrong)


NOT_PROPOSED: list[tuple[str, list[dict[str, Any]]]] = [
    ("another type", [{"file_path": 5, "depth": 1}]),
    ("a name that is like nothing", [{"reason": "a", "depth": 1}]),
    ("two names", [{"file_path": "a", "dir_path": "b", "depth": 1}]),
    (
        "beside the parameter too",
        [{"file_path": "a", "depth": 1}, {"file_path": "a", "depth": "x", "path": "b"}],
    ),
    ("like two parameters", [{"target_path": "a", "depth": 1}]),
]


@pytest.mark.parametrize(
    "sent", [row[1] for row in NOT_PROPOSED], ids=[row[0] for row in NOT_PROPOSED]
)
def test_a_name_that_may_mean_something_else_is_not_an_alias(
    sent: list[dict[str, Any]], tmp_path: Path
) -> None:
    """An alias puts a value where it was not sent."""
    found = suggested(tmp_path, *sent)

    assert "alias" not in [change.kind for change in found]


def tool(
    required: list[str], *, is_open: bool = True, **properties: str
) -> dict[str, Any]:
    parts = {name: {"type": kind} for name, kind in properties.items()}
    schema = {
        "type": "object",
        "required": required,
        "properties": parts,
        "additionalProperties": is_open,
    }
    return {"name": "find", "inputSchema": schema}


READ = tool(["path"], path="string", limit="integer")
COPY = tool(["src", "dst"], src="string", dst="string")
WRITE = tool(["path", "content"], path="string", content="string")


@pytest.mark.parametrize("is_open", [True, False])
@pytest.mark.parametrize(
    "names", [["file"], ["filepath"], ["file", "filename"]], ids=str
)
def test_each_other_name_of_the_only_required_parameter_is_an_alias(
    names: list[str], is_open: bool, tmp_path: Path
) -> None:
    """No name has to be like the parameter's name, for it can mean no other; none is
    said to leave it out.
    """
    read = tool(["path"], is_open=is_open, path="string", limit="integer")

    found = suggested(tmp_path, *({name: "a", "limit": 2} for name in names), tool=read)

    assert [(each.kind, each.after["aliases"], each.calls) for each in found] == [
        ("alias", {"path": [name]}, 3) for name in names
    ]
    for change in found:
        assert accepts(change.after, {"path": "a", "limit": 2})
        assert not accepts(change.after, {"limit": 2})


@pytest.mark.parametrize(
    ("listed", "sent", "reason"),
    [
        (
            COPY,
            {"from": "a", "to": "b"},
            "3 calls have 'from', 'to' and lack 'dst', 'src'",
        ),
        (
            WRITE,
            {"path": "a", "encoding": "utf8"},
            "3 calls have 'encoding' and lack 'content'",
        ),
        (
            READ,
            {"file": "a", "mode": "r"},
            "3 calls have 'file', 'mode' and lack 'path'",
        ),
    ],
    ids=["two for two", "beside another required one", "two for one"],
)
def test_other_names_that_may_mean_two_things_are_said_and_change_nothing(
    listed: dict[str, Any], sent: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    """The text of an encoding as a file's content would be harm; and nothing is said to
    be left out.
    """
    [said] = suggested(tmp_path, sent, tool=listed)

    assert (said.kind, said.reason) == ("other-names", reason)
    assert said.before == said.after


@pytest.mark.parametrize(
    ("calls", "kinds"),
    [
        ([{"verbose": True}], ["description"]),
        ([{"file": "a"}, {}], ["description", "other-names"]),
        (
            [{"file": "a"}, {"file": "a", "path": "b", "limit": "x"}],
            ["description", "other-names"],
        ),
    ],
    ids=["of another type", "left out as often", "beside it"],
)
def test_what_is_left_out_and_what_has_another_name_are_different_things(
    calls: list[dict[str, Any]], kinds: list[str], tmp_path: Path
) -> None:
    """An unlike name is an alias only if nearly all calls without the parameter have
    one.
    """
    assert sorted(each.kind for each in suggested(tmp_path, *calls, tool=READ)) == kinds


def test_two_calls_speak_for_nothing(tmp_path: Path) -> None:
    """That may be one model on one day."""
    assert suggested(tmp_path, {"file_path": "a", "depth": 1}, times=2) == []


def test_calls_that_pass_leave_no_schema_in_the_log(tmp_path: Path) -> None:
    """And a schema is there once."""
    assert suggested(tmp_path, VALID) == []
    assert "schema" not in (tmp_path / "log").read_text()

    suggested(tmp_path, {**VALID, "limit": None})

    assert (tmp_path / "log").read_text().count('"event":"schema"') == 1


def test_a_refused_call_leaves_its_names_and_no_value(tmp_path: Path) -> None:
    """With the type of each."""
    suggested(tmp_path, {"file_path": "private", "depth": 1}, times=1)

    entry = json.loads((tmp_path / "log").read_text().splitlines()[-1])
    assert entry["sent"] == {"file_path": "string", "depth": "integer"}
    assert "private" not in (tmp_path / "log").read_text()


def test_the_command_prints_each_change_before_and_after(tmp_path: Path) -> None:
    """As text, and as JSON."""
    suggested(tmp_path, {"file_path": "a", "depth": 1}, {**VALID, "limit": None})
    arguments = ["mcp-proxy", "report", str(tmp_path / "log"), "--suggest"]

    drawn = CliRunner().invoke(group, arguments, env={"COLUMNS": "200"})
    printed = json.loads(CliRunner().invoke(group, [*arguments, "--json"]).output)

    assert "find /path: alias, 3 calls have 'file_path' and lack 'path'" in drawn.output
    assert '{"path": ["file_path"]}' in drawn.output
    assert "before" in drawn.output
    assert [(each["kind"], each["calls"]) for each in printed["suggestions"]] == [
        ("nullable", 3),
        ("alias", 3),
    ]


def test_the_command_prints_other_names_without_a_change(tmp_path: Path) -> None:
    """There is none."""
    suggested(tmp_path, {"from": "a", "to": "b"}, tool=COPY)

    drawn = CliRunner().invoke(
        group, ["mcp-proxy", "report", str(tmp_path / "log"), "--suggest"]
    )

    assert (
        "find : other-names, 3 calls have 'from', 'to' and lack 'dst', 'src'"
        in drawn.output
    )
    assert "before" not in drawn.output
