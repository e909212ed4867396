"""Parameters as texts, as tables: those of chat templates, and those that were
swallowed by another.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.adapters.mcp_proxy.calls import judge
from skillruntime.adapters.mcp_proxy.tools import compile_tool
from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    BOOLEAN,
    CUT_OFF,
    INTEGER,
    NULL,
    NUMBER,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    either,
)

ANY = closed(
    text=TEXT,
    count=INTEGER,
    ratio=NUMBER,
    flag=BOOLEAN,
    tags=array(TEXT),
    options=OBJECT,
    note=either(TEXT, NULL),
    either=either(TEXT, INTEGER),
)


def qwen(**parameters: str) -> str:
    written = "".join(
        f"<parameter={name}>\n{text}\n</parameter>\n"
        for name, text in parameters.items()
    )
    return f"<tool_call>\n<function=f>\n{written}</function>\n</tool_call>"


TYPED: list[tuple[str, str, Any]] = [
    ("text", "Paris", "Paris"),
    ("text", "5", "5"),
    ("text", "null", "null"),
    ("text", "[1, 2]", "[1, 2]"),
    ("text", "a &lt; b &amp;", "a &lt; b &amp;"),
    ("text", "\n\ntwo\n\n", "\n\ntwo\n\n"),
    ("text", "", ""),
    ("text", " x ", " x "),
    ("count", "5", 5),
    ("count", "5.5", REFUSED),
    ("ratio", "1.50", 1.5),
    ("flag", "True", True),
    ("flag", "false", False),
    ("tags", '["a", "b"]', ["a", "b"]),
    ("tags", "['a', 'b']", ["a", "b"]),
    ("options", '{"a": [1]}', {"a": [1]}),
    ("options", "x", REFUSED),
    # a string or another value
    ("note", "hello", "hello"),
    ("note", "null", None),
    ("note", "None", REFUSED),
    ("either", "5", REFUSED),
    ("either", "five", "five"),
    ("text", '"quoted"', REFUSED),
    # the end of the value inside the value
    ("text", "a </parameter> b", "a </parameter> b"),
    ("text", "a </parameter>\n</function>\n</tool_call> b", REFUSED),
    ("text", "a </function> b", "a </function> b"),
]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    TYPED,
    ids=[f"{name} {text!r}" for name, text, _ in TYPED],
)
def test_the_text_of_a_parameter_has_the_type_that_the_schema_declares(
    name: str, text: str, value: Any
) -> None:
    """A string wherever the schema takes one, else JSON of the declared type."""
    assert_outcome(
        ANY, qwen(**{name: text}), value if value is REFUSED else {name: value}
    )


def element(key: str, text: str) -> str:
    return f'<parameter name="{key}">{text}</parameter>'


def invoke(*elements: str) -> str:
    return '<invoke name="f">' + "".join(elements) + "</invoke>"


A = "<parameter=text>a</parameter>"
MARKS: list[tuple[str, Any]] = [
    (f"<function=f>{A}</function>", {"text": "a"}),
    ("<function=f>\n</function>", {}),
    (f"<function=f>{A}<parameter=text>b</parameter></function>", REFUSED),
    (f"<function=f>{A}{A}</function>", REFUSED),
    ("<function=f><parameter=text>a", CUT_OFF),
    (f"<function=f>{A}", CUT_OFF),
    (f"<tool_call><function=f>{A}</function>", CUT_OFF),
    (f"<function=f>{A} and <parameter=count>1</parameter></function>", REFUSED),
    (f"<function=f>{A}</function>\n<function=f>{A}</function>", REFUSED),
    (
        "<tool_call>f\n"
        "<arg_key>text</arg_key>\n"
        "<arg_value>a\n"
        "</arg_value>\n"
        "</tool_call>",
        {"text": "a\n"},
    ),
    (
        "<tool_call>f\n"
        "<arg_key>text</arg_key>\n"
        "<arg_value>\n"
        "a\n"
        "</arg_value>\n"
        "</tool_call>",
        {"text": "a"},
    ),
    ("<tool_call>f\n</tool_call>", {}),
    (invoke(element("count", "5")), {"count": 5}),
    (invoke(element("text", "5")), {"text": "5"}),
    (f"I look it up.\n{invoke(element('text', 'a'))}\n", {"text": "a"}),
    (f"Do not worry. {invoke(element('text', 'a'))}", {"text": "a"}),
    (f"{invoke(element('text', 'a'))} after", {"text": "a"}),
    (f"{invoke(element('text', 'a'))} Do not run it.", REFUSED),
    (f"<think>{invoke(element('text', 'a'))}</think>", REFUSED),
    (invoke('{"text": "a"}'), {"text": "a"}),
    (invoke(element("other", "a")), REFUSED),
]


@pytest.mark.parametrize(
    ("text", "expected"), MARKS, ids=[repr(text)[:80] for text, _ in MARKS]
)
def test_a_template_is_read_whole_or_refused(text: str, expected: Any) -> None:
    """A mark that is not closed, a name that comes twice and other text between two
    parameters are refused.
    """
    assert_outcome(ANY, text, expected)


def test_what_a_template_says_of_a_parameter_decides() -> None:
    """DeepSeek's marks say which parameter is a string."""
    mark = "\uff5cDSML\uff5c"
    for said, expected in (("true", "5"), ("false", 5)):
        written = f'<{mark}parameter name="either" string="{said}">5</{mark}parameter>'
        text = f'<{mark}invoke name="f">\n{written}\n</{mark}invoke>'
        assert_outcome(ANY, text, {"either": expected})


PAGE = closed("content", content=TEXT, metadata=OBJECT, preset=TEXT, count=INTEGER)
SWALLOWED: list[tuple[dict[str, Any], Any]] = [
    (
        {"content": "long text</content>\n" + element("metadata", '{"tags": "a,b"}')},
        {"content": "long text", "metadata": {"tags": "a,b"}},
    ),
    # the last line of indented code
    (
        {"content": "def f():\n\n    return 1</content>\n" + element("preset", "x")},
        {"content": "def f():\n\n    return 1", "preset": "x"},
    ),
    (
        {
            "content": "text</parameter>"
            + element("preset", "x")
            + "\n"
            + '<parameter name="count">5'
        },
        {"content": "text", "preset": "x", "count": 5},
    ),
    (
        {"content": 'text.</content>\n<parameter name="preset">["a","b"]'},
        {"content": "text.", "preset": '["a","b"]'},
    ),
    (
        {"content": "text</content><parameter=count>5</parameter>"},
        {"content": "text", "count": 5},
    ),
    (
        {"content": 'He said "yes"</content>' + element("preset", "x")},
        {"content": 'He said "yes"', "preset": "x"},
    ),
    (
        {"content": "a `</content>` b</content>" + element("preset", "x")},
        {"content": "a `</content>` b", "preset": "x"},
    ),
    # it does not fit
    ({"content": "text</content>" + element("count", "five")}, REFUSED),
    ({"content": "text</content>" + element("metadata", "x")}, REFUSED),
]


@pytest.mark.parametrize(("sent", "expected"), SWALLOWED, ids=str)
def test_parameters_that_another_swallowed_are_recovered_or_the_call_is_refused(
    sent: Any, expected: Any
) -> None:
    """Though the call is valid as it is: they would be lost."""
    assert_outcome(PAGE, sent, expected)


def test_a_recovered_parameter_is_recorded_with_a_warning() -> None:
    """The text is what the model meant to end there."""
    accepted = Contract.from_dict({"input": PAGE}).accept(SWALLOWED[0][0])

    assert [repair.to_dict() for repair in accepted.repairs] == [
        {
            "path": "/content",
            "rule": "swallowed-parameter",
            "before": SWALLOWED[0][0]["content"],
            "after": "long text",
        }
    ]
    assert accepted.warnings == (
        "the parameter 'content' held other parameters, which are passed on as such",
    )


@pytest.mark.parametrize(
    "sent",
    [
        {"content": element("preset", "x")},
        {"content": '<parameter name="path">'},
        {"content": "text</content>"},
        {"content": "text</content> and " + element("preset", "x")},
        {"content": "text</content>" + element("preset", "x") + " and more"},
        {"content": "<content>text</content>" + element("preset", "x")},
        {"content": "text</content>" + element("other", "x")},
        # the form is quoted, or is another parameter's
        {"content": "text</body>" + element("preset", "x")},
        {"content": 'Use `</content><parameter name="preset">` here'},
        {"content": 'Use `</content>\n<parameter name="count">'},
        {"content": 'It writes "</content><parameter name="preset">x'},
        {"content": "```\n</content>\n" + element("preset", "x") + "\n"},
        {"content": "Example:\n\n    </content>\n    " + element("preset", "x")},
        {"content": "Example:\n\n    text</content>\n    " + element("preset", "x")},
        {"content": "> </content>\n" + element("preset", "x")},
        {"content": "text</content>" + element("preset", "x"), "preset": "y"},
        {"content": "text</content>" + element("preset", "x") + element("preset", "x")},
    ],
    ids=str,
)
def test_every_other_text_is_untouched(sent: Any) -> None:
    """A valid call comes back as the same object."""
    assert Contract.from_dict({"input": PAGE}).accept(sent).arguments is sent


def test_swallowed_parameters_that_do_not_fit_are_named() -> None:
    """So that the model can send each under its own name."""
    with pytest.raises(
        SkillInputError,
        match="'content' holds others that do not fit: 'preset', 'count'",
    ):
        Contract.from_dict({"input": PAGE}).accept(
            {
                "content": "text</content>"
                + element("preset", "x")
                + element("count", "five")
            }
        )


def test_the_proxy_recovers_them_too() -> None:
    """A call that fits passes as it is, unless it has swallowed parameters."""
    tool = compile_tool({"name": "t", "inputSchema": PAGE})
    sent = {"content": "text</content>" + element("count", "5")}

    assert (
        judge(tool, json.dumps(sent).encode()).arguments
        == b'{"content":"text","count":5}'
    )
    assert (
        judge(tool, json.dumps({"content": "a </parameter> b"}).encode()).outcome
        == "passed"
    )
    assert (
        judge(tool, json.dumps({"content": "a </parameter> b"}).encode()).arguments
        is None
    )
