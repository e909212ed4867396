"""The proxy without I/O: what passes, what is repaired, what is refused, and when a
call waits.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.adapters.mcp_proxy import Options, Session
from tests.mcp_proxy.messages import (
    CLIENT,
    DIGEST,
    ENVELOPE,
    SERVER,
    call,
    known,
    to_bytes,
    to_client,
    to_server,
)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=8,
)
METHODS = [
    "ping",
    "resources/read",
    "tools/callx",
    "tools/Call",
    "logging/setLevel",
    "tasks/get",
    "notifications/progress",
]


def test_a_valid_call_keeps_its_bytes() -> None:
    """A call that fits is not written again: spaces, order and escapes stay."""
    line = call(
        '{"limit" :  5,"topic":"\\u00e9"}', more=', "_meta": {"progressToken": 1.50}'
    )

    assert known().from_client(line) == [(SERVER, line)]


def test_a_whole_number_float_is_sent_as_the_integer_that_the_schema_asks_for() -> None:
    """Strict servers refuse the point; it is the one change of a call that fits."""
    line = call('{"limit": 5.0, "topic": "AI"}')

    [(_, raw)] = known().from_client(line)

    assert b'"arguments": {"limit":5,"topic":"AI"}' in raw


def test_only_the_arguments_of_a_repaired_call_change() -> None:
    """The id, `_meta` and fields that the proxy does not know keep their bytes."""
    line = call(
        '{"topic": "AI", "limit": "5"}',
        more=', "_meta": {"progressToken": 1.50}, "x": [ 1 ]',
        id="1.0",
    )

    assert known().from_client(line) == [
        (
            SERVER,
            line.replace(b'{"topic": "AI", "limit": "5"}', b'{"topic":"AI","limit":5}'),
        )
    ]


def test_numbers_that_need_no_repair_keep_their_literals() -> None:
    """A repair elsewhere does not shorten a number, and a number for a text keeps its
    last zero.
    """
    line = call('{"topic": 1.10, "share": 0.12345678901234567890, "limit": "5"}')

    [(_, raw)] = known().from_client(line)

    assert b'"topic":"1.10","share":0.12345678901234567890,"limit":5' in raw


def test_leading_zeros_of_a_text_are_never_lost() -> None:
    """A text that fits the schema stays unchanged when other values are repaired."""
    line = call('{"topic": "00713", "code": "007", "limit": "5"}')

    [message] = to_server(known().from_client(line))

    assert message["params"]["arguments"] == {
        "topic": "00713",
        "code": "007",
        "limit": 5,
    }


def test_a_call_that_cannot_be_repaired_is_answered_and_not_forwarded() -> None:
    """The answer is a tool execution error (SEP-1303) with the id of the call and the
    next step.
    """
    sends = known().from_client(call('{"topic": "AI", "limit": 11}', id='"a"'))

    text = (
        "Not run: /limit: 11 is more than the maximum 10. Send an integer, at most 10."
    )
    answer = {
        "jsonrpc": "2.0",
        "id": "a",
        "result": {"content": [{"type": "text", "text": text}], "isError": True},
    }
    assert (to_server(sends), to_client(sends)) == ([], [answer])


def test_the_same_refused_call_is_answered_in_other_words() -> None:
    """A model that sends it a third time is shown what the parameter takes; another
    call is answered as at first.
    """
    session = known()
    texts = []
    for number in range(4):
        arguments = (
            '{"topic": "AI", "limit": 11}'
            if number < 3
            else '{"topic": "AI", "limit": 12}'
        )
        [answer] = to_client(session.from_client(call(arguments, id=str(number))))
        texts.append(answer["result"]["content"][0]["text"])

    assert texts == [
        "Not run: /limit: 11 is more than the maximum 10. Send an integer, at most 10.",
        "Not run: /limit: 11 is more than the maximum 10. This same call has been "
        "refused 2 times: change it, or ask the user. Send an integer, at most 10.",
        "Not run: These arguments were refused 3 times, and nothing was run: /limit: "
        "11 is more than the maximum 10. Do not send these arguments again. /limit "
        "takes an integer, at most 10.",
        "Not run: /limit: 12 is more than the maximum 10. Send an integer, at most 10.",
    ]


def test_a_stateless_call_is_refused_in_the_form_of_its_revision() -> None:
    """A 2026-07-28 result says that it is complete."""
    sends = known().from_client(call("{}", more=f', "_meta": {json.dumps(ENVELOPE)}'))

    assert to_client(sends)[0]["result"]["resultType"] == "complete"


def test_a_call_that_asks_for_a_task_is_refused_with_an_error() -> None:
    """Its client expects a CreateTaskResult (2025-11-25), or an error."""
    sends = known().from_client(call("{}", more=', "task": {"ttl": 60000}'))

    assert to_client(sends)[0]["error"]["code"] == -32602


@pytest.mark.parametrize(
    "line",
    [
        (
            b'{"id":1,"id":2,"method":"tools/call",'
            b'"params":{"name":"digest","arguments":{"topic":"a"}}}\n'
        ),
        (
            b'{"id":2,"method":"tools/call","method":"ping",'
            b'"params":{"name":"digest","arguments":{"topic":"a"}}}\n'
        ),
        (
            b'{"id":2,"method":"tools/call",'
            b'"params":{"name":"digest","name":"x","arguments":{"topic":"a"}}}\n'
        ),
        (
            b'{"id":2,"method":"tools/call",'
            b'"params":{"name":"digest","arguments":{"topic":"a"},"arguments":{}}}\n'
        ),
        (
            b'{"id":2,"method":"tools/call",'
            b'"params":{"name":"digest","arguments":{"topic":"a","topic":"b"}}}\n'
        ),
        (
            b'{"id":2,"method":"tools/call",'
            b'"params":{"name":"digest","arguments":{"topic":"a","topic":"a"}}}\n'
        ),
    ],
)
def test_keys_that_come_twice_are_refused(line: bytes) -> None:
    """Two parsers may read two calls in one text."""
    sends = known().from_client(line)

    assert to_server(sends) == []
    assert to_client(sends)[0]["id"] == 2
    assert "comes twice" in to_client(sends)[0]["result"]["content"][0]["text"]


def test_a_method_with_escapes_is_still_a_call() -> None:
    """Some encoders write the slash of a method with a backslash; the call is judged
    all the same.
    """
    sends = known().from_client(
        call('{"limit": 3}').replace(b"tools/call", b"tools\\/call")
    )

    assert to_server(sends) == []


@given(st.sampled_from(METHODS), json_values, json_values)
def test_other_messages_pass_with_the_same_bytes(
    method: str, params: Any, number: Any
) -> None:
    """What is not a call passes in both directions as it came."""
    line = to_bytes({"id": number, "method": method, "params": params, "x": params})
    answer = to_bytes({"id": number, "result": params})

    assert known().from_client(line) == [(SERVER, line)]
    assert known().from_server(line) == [(CLIENT, line)]
    assert known().from_client(answer) == [(SERVER, answer)]
    assert known().from_server(answer) == [(CLIENT, answer)]


@given(st.binary())
def test_what_is_not_json_passes_with_the_same_bytes(line: bytes) -> None:
    """The other side answers it, as it would without the proxy."""
    assert known().from_client(line) == [(SERVER, line)]
    assert known().from_server(line) == [(CLIENT, line)]


@given(
    st.dictionaries(
        st.sampled_from(["topic", "limit", "tags", "Topic", "x"]), json_values
    )
)
def test_every_call_is_forwarded_fitting_or_answered_once(
    arguments: dict[str, Any],
) -> None:
    """There is no third way, and what is forwarded is accepted unchanged the next
    time.
    """
    sends = known().from_client(call(json.dumps(arguments)))

    assert len(sends) == 1
    if sends[0][0] == SERVER:
        assert known().from_client(sends[0][1]) == sends


def test_a_call_before_any_list_waits_for_the_tools() -> None:
    """The proxy asks for the tools itself, all pages, and swallows the answers."""
    session = Session(new_id=iter("abc").__next__, initialized=True)

    [page] = to_server(session.from_client(call('{"topic": "AI", "limit": "5"}')))
    assert page == {"jsonrpc": "2.0", "id": "a", "method": "tools/list"}
    answer = {"jsonrpc": "2.0", "id": "a", "result": {"tools": [], "nextCursor": "2"}}
    [second] = to_server(session.from_server(to_bytes(answer)))
    assert second == {
        "jsonrpc": "2.0",
        "id": "b",
        "method": "tools/list",
        "params": {"cursor": "2"},
    }
    sends = session.from_server(
        to_bytes({"jsonrpc": "2.0", "id": "b", "result": {"tools": [DIGEST]}})
    )

    assert to_client(sends) == []
    assert to_server(sends)[0]["params"]["arguments"] == {"topic": "AI", "limit": 5}
    assert not session.waiting


def test_messages_behind_a_waiting_call_do_not_wait() -> None:
    """Only the call whose schema is unknown is held back."""
    session = Session(initialized=True)
    session.from_client(call("{}"))

    assert session.from_client(b'{"id":8,"method":"ping"}\n') == [
        (SERVER, b'{"id":8,"method":"ping"}\n')
    ]


def test_the_tools_are_not_listed_before_initialized() -> None:
    """A client that calls too early gets the server's own answer."""
    session = Session()

    assert session.from_client(call("{}")) == [(SERVER, call("{}"))]


def test_a_stateless_call_lends_its_envelope_to_the_list() -> None:
    """A 2026-07-28 server takes no request without it; the progress token stays with
    the call.
    """
    session = Session(new_id=iter("a").__next__)

    sends = session.from_client(
        call("{}", more=f', "_meta": {json.dumps({**ENVELOPE, "progressToken": 1})}')
    )

    assert to_server(sends)[0]["params"] == {"_meta": ENVELOPE}


def test_a_call_that_waits_and_is_cancelled_is_dropped() -> None:
    """Neither the call nor the cancel reaches the server, and nothing is answered."""
    session = Session(new_id=iter("a").__next__, initialized=True)
    session.from_client(call("{}"))

    cancel = to_bytes({"method": "notifications/cancelled", "params": {"requestId": 7}})
    assert session.from_client(cancel) == []
    assert (
        session.from_server(to_bytes({"id": "a", "result": {"tools": [DIGEST]}})) == []
    )


def test_the_cancel_of_a_refused_call_is_swallowed() -> None:
    """The server never saw the call; a cancel of another id passes."""
    session = known()
    session.from_client(call("{}"))
    cancel = to_bytes({"method": "notifications/cancelled", "params": {"requestId": 7}})
    other = to_bytes(
        {"method": "notifications/cancelled", "params": {"requestId": "7"}}
    )

    assert session.from_client(cancel) == []
    assert session.from_client(other) == [(SERVER, other)]


def test_a_server_that_cannot_list_gets_calls_unchecked() -> None:
    """Schemas are open: without one a call passes, and the log says why."""
    log: list[Any] = []
    session = Session(log=log.append, new_id=iter("ab").__next__, initialized=True)
    session.from_client(call("{}"))

    error = {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32601, "message": "Method not found"},
    }
    assert session.from_server(to_bytes(error)) == [(SERVER, call("{}"))]
    assert session.from_client(call("{}", id="8")) == [(SERVER, call("{}", id="8"))]
    assert [entry["event"] for entry in log] == ["unlistable", "call", "call"]


def test_a_server_that_never_lists_gets_calls_unchecked_at_the_deadline() -> None:
    """A call does not wait forever, and the client never sees the list when it comes
    after all.
    """
    session = Session(new_id=iter("a").__next__, initialized=True)
    session.from_client(call("{}"))

    assert session.give_up_listing() == [(SERVER, call("{}"))]
    assert (
        session.from_server(
            to_bytes({"jsonrpc": "2.0", "id": "a", "result": {"tools": []}})
        )
        == []
    )


def test_a_call_is_judged_again_before_a_stale_schema_refuses_it() -> None:
    """After `list_changed` a call that still fits passes at once; another waits for the
    new schema.
    """
    session = known()
    changed = to_bytes({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    assert session.from_server(changed) == [(CLIENT, changed)]

    fits = call('{"topic": "a"}')
    assert session.from_client(fits) == [(SERVER, fits)]
    breaks = call('{"days": 3}', id="8")
    assert to_server(session.from_client(breaks))[0]["method"] == "tools/list"
    new = {
        "name": "digest",
        "inputSchema": {"type": "object", "properties": {"days": {"type": "integer"}}},
    }
    assert session.from_server(to_bytes({"id": "a", "result": {"tools": [new]}})) == [
        (SERVER, breaks)
    ]


def test_a_schema_that_cannot_be_used_lets_calls_pass() -> None:
    """A reference that leaves the schema, an invalid one, none at all: the server
    judges.
    """
    for schema in (
        {"$ref": "https://example.org/s.json"},
        {"type": "nonsense"},
        True,
        None,
        {"$schema": "urn:x"},
    ):
        session = known({"name": "digest", "inputSchema": schema})
        assert session.from_client(call('{"any": "5"}')) == [
            (SERVER, call('{"any": "5"}'))
        ]


@pytest.mark.parametrize(
    "draft", [{}, {"$schema": "http://json-schema.org/draft-07/schema#"}]
)
def test_items_as_an_array_are_read_by_draft_07(draft: dict[str, str]) -> None:
    """Servers write them with and without `$schema`."""
    schema = {
        **draft,
        "type": "object",
        "properties": {"pair": {"items": [{"type": "integer"}, {"type": "string"}]}},
    }
    session = known({"name": "digest", "inputSchema": schema})

    [message] = to_server(session.from_client(call('{"pair": ["1", "x"]}')))

    assert message["params"]["arguments"] == {"pair": [1, "x"]}


def test_format_is_a_comment() -> None:
    """JSON Schema 2020-12 does not assert it, and a server that takes the value must
    not lose the call.
    """
    session = known(
        {
            "name": "digest",
            "inputSchema": {"properties": {"at": {"type": "string", "format": "uri"}}},
        }
    )

    assert session.from_client(call('{"at": "example.com"}')) == [
        (SERVER, call('{"at": "example.com"}'))
    ]


def test_a_format_guides_the_repair_of_a_call() -> None:
    """Where something else is wrong, quotes around a date are taken away too, as they
    are not part of it.
    """
    properties = {"day": {"type": "string", "format": "date"}, "n": {"type": "integer"}}
    session = known(
        {"name": "digest", "inputSchema": {"type": "object", "properties": properties}}
    )

    [message] = to_server(
        session.from_client(call('{"day": "\'2026-01-31\'", "n": "5"}'))
    )

    assert message["params"]["arguments"] == {"day": "2026-01-31", "n": 5}


def test_the_repair_is_reported_in_the_result() -> None:
    """`_meta` is added; what is in it, and every other byte, stays."""
    session = known()
    session.from_client(call('{"topic": "AI", "limit": "5"}'))

    [(_, raw)] = session.from_server(
        b'{"jsonrpc": "2.0","id":7,"result":{"content":[ ],"_meta":{"x":1.0}}}\n'
    )

    note = (
        b'"skillruntime/repairs":[{"path":"/limit","rule":"number-text",'
        b'"before":"\\"5\\"","after":"5"}],'
    )
    assert (
        raw
        == b'{"jsonrpc": "2.0","id":7,"result":{"content":[ ],"_meta":{'
        + note
        + b'"x":1.0}}}\n'
    )


@pytest.mark.parametrize(
    "result",
    ["{}", '{"_meta":{}}', '{"_meta":null}', '{"content":[]}', '{ "_meta" : {"a":1} }'],
)
def test_the_report_fits_into_every_result(result: str) -> None:
    """The answer stays JSON, and has one `_meta`."""
    session = known()
    session.from_client(call('{"topic": "AI", "limit": "5"}'))

    [answer] = to_client(
        session.from_server(f'{{"result":{result},"jsonrpc":"2.0","id":7}}\n'.encode())
    )

    assert answer["result"]["_meta"]["skillruntime/repairs"][0]["path"] == "/limit"


@pytest.mark.parametrize(
    "name", ["Digest", "DIGEST", "mcp__news__digest", "functions.digest"]
)
def test_a_garbled_tool_name_meets_the_one_tool_it_can_mean(name: str) -> None:
    """Case, separators and a prefix are what models change."""
    [message] = to_server(known().from_client(call('{"topic": "a"}', name=name)))

    assert message["params"] == {"name": "digest", "arguments": {"topic": "a"}}


def test_a_tool_name_that_could_mean_two_tools_is_refused() -> None:
    """The model reads which two; a name that is not near to one passes, for a tool may
    be hidden from lists.
    """
    session = known({"name": "read-file"}, {"name": "read_file"})

    [answer] = to_client(session.from_client(call("{}", name="ReadFile")))
    other = call("{}", name="readfiles")

    text = 'Not run: "ReadFile" can be several tools. Call read-file or read_file.'
    assert answer["result"] == {
        "content": [{"type": "text", "text": text}],
        "isError": True,
    }
    assert session.from_client(other) == [(SERVER, other)]


def test_an_error_about_arguments_becomes_a_tool_execution_error() -> None:
    """The model reads it and can send a better call; SEP-1303."""
    session = known()
    session.from_client(call('{"topic": "a"}'))
    error = {
        "code": -32602,
        "message": "MCP error -32602: Input validation error: Invalid arguments for tool "
        "digest",
    }

    [answer] = to_client(
        session.from_server(to_bytes({"jsonrpc": "2.0", "id": 7, "error": error}))
    )

    assert answer["result"] == {
        "content": [{"type": "text", "text": error["message"]}],
        "isError": True,
    }


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32602, "message": "Unknown tool: digest"},
        {"code": -32602, "message": "MCP error -32602: Tool digest not found"},
        {
            "code": -32602,
            "message": "params._meta must be an object carrying the required envelope "
            "keys",
        },
        {"code": -32601, "message": "Invalid arguments"},
        {"code": -32603, "message": "Invalid arguments"},
    ],
)
def test_other_errors_stay_errors(error: dict[str, Any]) -> None:
    """Only what a better call would cure is converted."""
    session = known()
    session.from_client(call('{"topic": "a"}'))
    line = to_bytes({"jsonrpc": "2.0", "id": 7, "error": error})

    assert session.from_server(line) == [(CLIENT, line)]


def test_a_retry_gets_the_repair_of_its_first_round_in_another_process() -> None:
    """The state that the client hands back carries the digest of what was forwarded,
    and the server gets its own.
    """
    first, second = known(), known()
    line = call('{"topic": "AI", "limit": "5"}')
    [(_, forwarded)] = first.from_client(line)
    asked = {
        "jsonrpc": "2.0",
        "id": 7,
        "result": {"resultType": "input_required", "requestState": "opaque"},
    }
    state = to_client(first.from_server(to_bytes(asked)))[0]["result"]["requestState"]

    retry = call(
        '{"topic": "AI", "limit": "5"}', id="8", more=f', "requestState": "{state}"'
    )
    [message] = to_server(second.from_client(retry))

    assert message["params"]["requestState"] == "opaque"
    assert (
        message["params"]["arguments"] == json.loads(forwarded)["params"]["arguments"]
    )


def test_a_retry_whose_first_round_is_not_shown_passes_untouched() -> None:
    """No mark, or another schema: the arguments stay as they are."""
    bare = call('{"topic": "AI", "limit": "5"}', more=', "requestState": "opaque"')
    marked = bare.replace(b"opaque", b"skillruntime1." + b"0" * 32 + b".opaque")

    assert known().from_client(bare) == [(SERVER, bare)]
    assert known().from_client(marked) == [(SERVER, bare)]


def test_a_batch_that_fits_keeps_its_bytes() -> None:
    """An array of valid messages passes as it is."""
    line = b'[ {"id":1,"method":"ping"} , ' + call('{"topic":"a"}').strip() + b" ]\n"

    assert known().from_client(line) == [(SERVER, line)]


def test_each_call_of_a_batch_is_checked() -> None:
    """One is repaired and forwarded with the ping, one is refused and answered at
    once.
    """
    session = known()
    calls = [
        call('{"topic": "a", "limit": "5"}', id="1"),
        call("{}", id="2"),
        b'{"id":3,"method":"ping"}',
    ]

    sends = session.from_client(
        b"[" + b",".join(each.strip() for each in calls) + b"]\n"
    )

    [batch] = to_server(sends)
    assert [each["id"] for each in batch] == [1, 3]
    assert batch[0]["params"]["arguments"] == {"topic": "a", "limit": 5}
    assert [[each["id"] for each in answers] for answers in to_client(sends)] == [[2]]
    assert session.from_server(b'[{"jsonrpc":"2.0","id":3,"result":{}}]\n')[0][1] == (
        b'[{"jsonrpc":"2.0","id":3,"result":{}}]\n'
    )


def test_a_batch_of_refused_calls_is_answered_at_once() -> None:
    """Nothing is forwarded, so nothing is waited for."""
    [answer] = to_client(known().from_client(b"[" + call("{}").strip() + b"]\n"))

    assert [each["id"] for each in answer] == [7]


def test_strict_refuses_what_safe_repairs() -> None:
    """The policy is the user's."""
    session = known(options=Options(policy="strict"))

    assert to_server(session.from_client(call('{"topic": "AI", "limit": "5"}'))) == []


def test_a_tool_may_have_a_policy_of_its_own() -> None:
    """`off` lets the calls of one tool pass unchecked."""
    session = known(options=Options(tools={"digest": {"policy": "off"}}))

    assert session.from_client(call("{}")) == [(SERVER, call("{}"))]


def test_a_list_that_is_stale_by_its_own_word_is_read_again_before_a_refusal() -> None:
    """`ttlMs` of 0 says that the list is not fresh."""
    session = known(ttlMs=0)

    assert to_server(session.from_client(call("{}")))[0]["method"] == "tools/list"


def test_an_answer_with_an_id_of_the_proxy_of_no_request_passes() -> None:
    """Ids belong to the side that uses them."""
    line = to_bytes({"jsonrpc": "2.0", "id": "a", "result": {}})

    assert known().from_server(line) == [(CLIENT, line)]


def test_a_request_whose_method_is_not_utf_8_is_not_taken_for_an_answer() -> None:
    """Its id may be that of a call which the client waits for: nothing is answered in
    its place.
    """
    session = known()
    batch = (
        b"["
        + call('{"topic": 1.5, "limit": "x"}', id="1").strip()
        + b","
        + call('{"topic": "a"}', id="2").strip()
        + b"]"
    )
    session.from_client(batch)
    odd = b'{"jsonrpc":"2.0","id":2,"method":"x\xff"}\n'

    assert session.from_server(odd) == [("client", odd)]
