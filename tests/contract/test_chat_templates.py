"""Calls in the chat templates of open models, and the rules by which their parameters
end.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from skillruntime import Contract, SkillInputError, repair
from tests import needs
from tests.contract.malformed import REFUSED
from tests.contract.recorded_outputs import outcomes

FILE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "content": {"type": "string"},
        "mode": {"type": "string"},
    },
    "required": ["path", "content"],
    "additionalProperties": False,
}
WIDE = "\uff5cDSML\uff5c"


def outcome(schema: dict[str, Any], text: str, name: str) -> Any:
    try:
        return repair(text, schema, name=name).arguments
    except SkillInputError:
        return REFUSED


def qwen(*parts: str) -> str:
    inner = "\n".join(parts)
    return f"<tool_call>\n<function=write>\n{inner}\n</function>\n</tool_call>"


def kimi(*parts: str) -> str:
    call = '<|open|>call tool="write" index="1"<|sep|>'
    inner = "".join(parts)
    return f"<|open|>tools<|sep|>{call}{inner}<|close|>call<|sep|><|close|>tools<|sep|>"


def argument(key: str, text: str, kind: str = "string") -> str:
    opening = f'<|open|>argument key="{key}" type="{kind}"<|sep|>'
    return f"{opening}{text}<|close|>argument<|sep|>"


PATH = "<parameter=path>\na.txt\n</parameter>"
ANSWERS: list[tuple[str, Any]] = [
    # A mark inside a value is text where other text follows it.
    (
        qwen(PATH, "<parameter=content>\nEnd with </parameter> here.\n</parameter>"),
        {"path": "a.txt", "content": "End with </parameter> here."},
    ),
    (qwen(PATH, "<parameter=content>\nx </parameter> y\n<parameter=mode>\nw"), REFUSED),
    # The next parameter's mark ends a value that was not closed.
    (
        qwen("<parameter=path>\na.txt", "<parameter=content>\nx\n</parameter>"),
        {"path": "a.txt", "content": "x"},
    ),
    # It does not where it is not required, where as many marks close as open, or
    # inside a line.
    (
        qwen(PATH, "<parameter=content>\nx", "<parameter=mode>\nw\n</parameter>"),
        REFUSED,
    ),
    (
        qwen(
            "<parameter=content>\nWrite:",
            "<parameter=path>\nb.txt\n</parameter>",
            "</parameter>",
        ),
        REFUSED,
    ),
    (qwen("<parameter=path>\na <parameter=content>\nx\n</parameter>"), REFUSED),
    # The last one may be closed by the call.
    (qwen(PATH, "<parameter=content>\nx"), {"path": "a.txt", "content": "x"}),
    # A value of several lines that the mark closes inside its last line may go on.
    (qwen(PATH, '<parameter=content>\ndef f():\n    return "</parameter>'), REFUSED),
    # Kimi K3.
    (
        kimi(argument("path", "a.txt"), argument("content", "5")),
        {"path": "a.txt", "content": "5"},
    ),
    (
        "Plan: {}.<|close|>think<|sep|>"
        + kimi(
            argument("path", "a"), argument("content", "<|close|>argument<|sep|> is")
        ),
        {"path": "a", "content": "<|close|>argument<|sep|> is"},
    ),
    # DeepSeek V4.1, and an element that closes itself.
    (
        f'<{WIDE} calls>\n<{WIDE} invoke name="write">\n'
        f'<{WIDE} parameter name="path" string="true">a</{WIDE} parameter>\n'
        f'<{WIDE} parameter name="content" string="true">x</{WIDE} parameter>\n'
        f"</{WIDE} invoke>\n</{WIDE} calls>",
        {"path": "a", "content": "x"},
    ),
    (f'<{WIDE}invoke name="write"/>', REFUSED),
    # GLM, whose first mark a server took as a token.
    (
        "write<arg_key>path</arg_key><arg_value>a</arg_value>"
        "<arg_key>content</arg_key><arg_value>x</arg_value>",
        {"path": "a", "content": "x"},
    ),
    (
        "read<arg_key>path</arg_key><arg_value>a</arg_value>"
        "<arg_key>content</arg_key><arg_value>x</arg_value>",
        REFUSED,
    ),
    # Harmony whose beginning stood in the prompt.
    (
        " to=functions.write<|channel|>commentary <|constrain|>json<|message|>"
        '{"path": "a", "content": "x"}',
        {"path": "a", "content": "x"},
    ),
    # Llama 4.
    (
        "<|python_start|>[write(path='a', content='x')]<|python_end|>",
        {"path": "a", "content": "x"},
    ),
    # The braces of a format string.
    (
        '<tool_call>{{"name": "write", "arguments": {{"path": "a", "content": "x"}}}}'
        "</tool_call>",
        {"path": "a", "content": "x"},
    ),
    ('{{"path": "a", "content": "x"}', REFUSED),
]


@pytest.mark.parametrize(
    ("text", "expected"), ANSWERS, ids=[repr(text)[:80] for text, _ in ANSWERS]
)
def test_a_call_in_a_template_is_read_whole_or_refused(
    text: str, expected: Any
) -> None:
    """Where a value ends is decided by marks alone, in one way."""
    assert outcome(FILE, text, "write") == expected


def test_keys_of_gemma_may_hold_spaces() -> None:
    """Its template writes them without quotes (ollama/ollama#18390)."""
    text = '<|tool_call>call:set{two words:{a b:<|"|>x<|"|>}}<tool_call|>'

    assert outcome({"type": "object"}, text, "set") == {"two words": {"a b": "x"}}


META: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "arguments": {"type": "object"}},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}
INNER = {"name": "search", "arguments": {"q": "x"}}
ENVELOPES: list[tuple[str, Any]] = [
    (
        '<tool_call>{"name": "run_tool", "arguments": {"name": "search", '
        '"arguments": {"q": "x"}}}</tool_call>',
        INNER,
    ),
    (
        '[TOOL_CALLS][{"name": "run_tool", "arguments": {"name": "search", '
        '"arguments": {"q": "x"}}}]',
        INNER,
    ),
    ('<tool_call>{"name": "search", "arguments": {"q": "x"}}</tool_call>', REFUSED),
    (
        '<function=run_tool>{"name": "search", "arguments": {"q": "x"}}</function>',
        INNER,
    ),
    ('[TOOL_CALLS]run_tool{"name": "search", "arguments": {"q": "x"}}', INNER),
    (
        "<|tool_call_begin|>functions.run_tool:0<|tool_call_argument_begin|>"
        '{"name": "search", "arguments": {"q": "x"}}<|tool_call_end|>',
        INNER,
    ),
    ('{"name": "search", "arguments": {"q": "x"}}', INNER),
]


@pytest.mark.parametrize(
    ("text", "expected"), ENVELOPES, ids=[text[:60] for text, _ in ENVELOPES]
)
def test_a_tool_that_calls_tools_gets_its_own_arguments(
    text: str, expected: Any
) -> None:
    """Behind a mark that writes envelopes the object is one; where the form has the
    name, the object is the arguments.
    """
    assert outcome(META, text, "run_tool") == expected


def test_a_value_of_a_template_is_typed_after_its_key_was_repaired() -> None:
    """``null`` under ``region_url`` is the null of ``regionUrl``."""
    schema = {
        "type": "object",
        "properties": {
            "regionUrl": {"type": ["string", "null"]},
            "pageSize": {"type": "integer"},
        },
        "additionalProperties": False,
    }
    text = (
        "<function=f><parameter=region_url>null</parameter>"
        "<parameter=page_size>5</parameter></function>"
    )

    accepted = Contract.from_schema(schema, name="f").accept(text)

    assert accepted.arguments == {"regionUrl": None, "pageSize": 5}


def test_null_is_not_decided_for_a_key_that_nothing_describes() -> None:
    """In an open schema the text and null are two readings."""
    text = "<function=f><parameter=Extra_Key>null</parameter></function>"

    assert outcome({"type": "object"}, text, "f") is REFUSED


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('["a", "b"]', REFUSED),
        ('["a", 5]', REFUSED),
        ("[1, 2]", "[1, 2]"),
        ("[x]", "[x]"),
    ],
)
def test_an_array_that_fails_its_branch_is_a_text_only_if_no_item_fits(
    text: str, expected: Any
) -> None:
    """Of a string or an array of strings."""
    schema = {
        "type": "object",
        "properties": {
            "to": {
                "anyOf": [
                    {"type": "string"},
                    {"type": "array", "items": {"type": "string"}},
                ]
            }
        },
    }
    call = f"<function=f><parameter=to>{text}</parameter></function>"
    answer = outcome(schema, call, "f")

    assert answer == (REFUSED if expected is REFUSED else {"to": expected})


def test_the_outputs_of_open_models_are_read_and_none_is_read_wrongly() -> None:
    """Recorded outputs of nine families of models, by the package's own answers. What
    is refused was cut off, or has none or several calls.

    Three texts are JSON objects that their authors call prose, and one lacks the marks
    of its call: as the arguments of a tool they are what they say.
    """
    needs.package("canitoolcall")

    results = list(outcomes())

    assert Counter(result.verdict for result in results) == {
        "read": 302,
        "refused": 163,
        "wrong": 4,
    }
    assert sorted(result.id for result in results if result.verdict == "wrong") == [
        "deepseek/vllm-v3-malformed-missing-call-tokens",
        "llama/l3-bug-empty-json-object-in-content",
        "llama/l3-json-answer-not-a-call",
        "llama/l3-vllm-json-without-name-is-content",
    ]
