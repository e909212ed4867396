"""Results on their way to the client: outputs that break their schema, tasks, and
folded input schemas.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.adapters.mcp_proxy import Options
from skillruntime.adapters.mcp_proxy.options import read_tool_options
from tests.mcp_proxy.messages import CLIENT, call, known, to_bytes, to_client

WEATHER = {
    "name": "weather",
    "inputSchema": {"type": "object"},
    "outputSchema": {
        "type": "object",
        "required": ["degrees"],
        "properties": {"degrees": {"type": "number"}},
    },
}
REFUSE = Options(check_output="refuse")


def answered(result: Any, options: Options = REFUSE, log: Any = None) -> Any:
    """Return what the client gets for a call of the weather whose result is
    *result*.
    """
    session = known(
        WEATHER, options=options, log=(log if log is not None else []).append
    )
    session.from_client(call("{}", name="weather"))
    [answer] = to_client(
        session.from_server(to_bytes({"jsonrpc": "2.0", "id": 7, "result": result}))
    )
    return answer["result"]


def test_a_result_that_keeps_its_promise_passes() -> None:
    """With the same bytes."""
    session = known(WEATHER, options=REFUSE)
    session.from_client(call("{}", name="weather"))
    line = (
        b'{"jsonrpc":"2.0", "id":7,"result":{"structuredContent":{"degrees":1.50}}}\n'
    )

    assert session.from_server(line) == [(CLIENT, line)]


def test_a_result_that_breaks_its_promise_is_refused() -> None:
    """The model learns that the tool ran, and what is wrong with the result."""
    result = answered({"content": [], "structuredContent": {"degrees": "warm"}})

    text = (
        "weather ran, but its result does not match its outputSchema: /degrees fails "
        "type. Do not rely on it."
    )
    assert result == {"content": [{"type": "text", "text": text}], "isError": True}


def test_report_passes_the_result_and_writes_to_the_log() -> None:
    """The user learns it, the model does not."""
    log: list[Any] = []
    broken = {"content": [], "structuredContent": {"degrees": "warm"}}

    assert answered(broken, Options(check_output="report"), log) == broken
    assert log[-1] == {
        "event": "output",
        "tool": "weather",
        "outcome": "report",
        "errors": ["/degrees fails type"],
    }


@pytest.mark.parametrize(
    "result",
    [
        {"content": [], "isError": True},
        {"task": {"taskId": "1", "status": "working"}},
        {"resultType": "input_required", "requestState": "s"},
        {"resultType": "task", "taskId": "1"},
    ],
)
def test_results_that_promise_nothing_are_not_checked(result: Any) -> None:
    """An error, a task, and a question have no output yet."""
    assert answered(result) == result


def test_folded_schemas_have_no_alternatives_at_their_root() -> None:
    """The client sees what every provider takes; the original is enforced, and all
    other bytes stay.
    """
    one, other = (
        {"properties": {key: {"type": "string"}}, "required": [key]}
        for key in ("url", "path")
    )
    tool = {
        "name": "open",
        "title": "é",
        "inputSchema": {"type": "object", "oneOf": [one, other]},
    }
    session = known(tool, options=Options(fold=True))
    session.from_client(b'{"jsonrpc":"2.0","id":"again","method":"tools/list"}\n')
    page = to_bytes(
        {"jsonrpc": "2.0", "id": "again", "result": {"tools": [tool], "x": 1}}
    )

    [(_, raw)] = session.from_server(page)

    schema = json.loads(raw)["result"]["tools"][0]["inputSchema"]
    assert sorted(schema["properties"]) == ["path", "url"] and "oneOf" not in schema
    assert raw.split(b'"inputSchema"')[0] == page.split(b'"inputSchema"')[
        0
    ] and raw.endswith(b'"x": 1}}\n')
    refused = session.from_client(call('{"url": "a", "path": "b"}', name="open"))
    assert to_client(refused)[0]["result"]["isError"] is True


def test_a_reference_at_the_root_is_followed_in_a_folded_schema() -> None:
    """Providers want an object with properties there."""
    schema = {
        "$ref": "#/$defs/In",
        "$defs": {"In": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }
    tool = {"name": "open", "inputSchema": schema}
    session = known(tool, options=Options(fold=True))
    session.from_client(b'{"jsonrpc":"2.0","id":"again","method":"tools/list"}\n')
    page = to_bytes({"jsonrpc": "2.0", "id": "again", "result": {"tools": [tool]}})

    [(_, raw)] = session.from_server(page)

    assert json.loads(raw)["result"]["tools"][0]["inputSchema"] == {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "$defs": {"In": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting"),
        ("{}", "expected"),
        ('{"tools": {"a": 1}}', "tools.a is not an object"),
        ('{"tools": {"a": {"polcy": "off"}}}', "tools.a.polcy is not an option"),
        (
            '{"tools": {"a": {"policy": "on"}}}',
            "tools.a.policy is 'on'; it can be strict, safe, lenient, off",
        ),
    ],
)
def test_a_file_of_options_says_what_is_wrong_with_it(
    tmp_path: Any, text: str, message: str
) -> None:
    """A misspelt option is not silently the default."""
    (tmp_path / "options.json").write_text(text)

    with pytest.raises(ValueError, match=message):
        read_tool_options(tmp_path / "options.json")
