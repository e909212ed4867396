"""Malformed texts of calls, as tables: the text, and what it means, or that it is
refused or was cut off.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    BOOLEAN,
    CUT_OFF,
    INTEGER,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    assert_outcome,
    closed,
    is_same,
    outcome,
)

CALL = closed(
    "city", city=TEXT, days=INTEGER, tags=array(TEXT), detail=BOOLEAN, o=OBJECT
)
PARIS = {"city": "Paris", "days": 5}
TEXTS: list[tuple[str, Any]] = [
    # what templates of models write around a call
    ('[TOOL_CALLS] [{"city": "Paris", "days": 5}]</s>', PARIS),
    (
        '<s>[TOOL_CALLS][{"name": "w", "arguments": {"city": "Paris", "days": 5}}]</s>',
        PARIS,
    ),
    ('<|tool_call|>[{"city": "Paris", "days": 5}]<|end|>', PARIS),
    ('functools[{"city": "Paris", "days": 5}]', PARIS),
    ('[TOOL_CALLS] [{"city": "Paris"}, {"city": "Rome"}]</s>', REFUSED),
    ('[TOOL_CALLS] [{"city": "Paris"}]</s> and then Rome', {"city": "Paris"}),
    ('[TOOL_CALLS] [{"city": "Par', CUT_OFF),
    # white space between tokens that was escaped once too often; inside a string it
    # stays as JSON reads it
    ('{\\n\\t"city": "Paris",\\n\\t"days": 5\\n}', PARIS),
    ('{"city": "Paris",\\n "days": 5}', PARIS),
    ('{"city": "a\\nb",\\n"days": 5}', {"city": "a\nb", "days": 5}),
    ('{"city": "Paris",\\x "days": 5}', REFUSED),
    ('{"city": "Paris"\\n', CUT_OFF),
    ('{"days": 5\\n', CUT_OFF),
    # a comma or semicolon behind the object, as in a list or a program
    ('{"city": "Paris", "days": 5},', PARIS),
    ('{"city": "Paris", "days": 5};', PARIS),
    ('{"city": "Paris", "days": 5} ,\n', PARIS),
    ('{"city": "Paris"},,', REFUSED),
    ('{"city": "Paris"}, "days": 5', REFUSED),
    ('{"city": "Paris"}; days = 5', REFUSED),
    ('{"city": "Paris"},{', CUT_OFF),
    ('{"city": "Paris", "days": 5}', PARIS),
    ('\ufeff{"city": "Paris", "days": 5}', PARIS),
    ('```json\n{"city": "Paris", "days": 5}\n```', PARIS),
    ('```\n{"city": "Paris", "days": 5}```', PARIS),
    ("```python\n{'city': 'Paris', 'days': 5}\n```", PARIS),
    ('Here:\n```json\n{"city": "Paris", "days": 5,}\n```\nDone.', PARIS),
    ('```json\n{"city": "Paris"}\n```\n```json\n{"city": "Rome"}\n```', REFUSED),
    ("```json\n```", REFUSED),
    ("```5```", REFUSED),
    ('Sure, here it is: {"city": "Paris", "days": 5}. Anything else?', PARIS),
    (
        "<tool_call>\n"
        '{"name": "f", "arguments": {"city": "Paris", "days": "5"}}\n'
        "</tool_call>",
        PARIS,
    ),
    ('<function=weather>{"city": "Paris", "days": 5}</function>', PARIS),
    ('{"city": "Paris", "days": 5}<|im_end|>', PARIS),
    ('arguments = {"city": "Paris", "days": 5};', PARIS),
    ('weather({"city": "Paris", "days": 5})', REFUSED),
    ('[TOOL_CALL] {"city": "Paris", "days": 5} [/TOOL_CALL]', PARIS),
    ('[Calling the weather tool]\n{"city": "Paris", "days": 5}', PARIS),
    ('[1] {"city": "Paris"}', REFUSED),
    ('["a"] {"city": "Paris"}', REFUSED),
    ('[a] [{"city": "Paris"}', CUT_OFF),
    (
        '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Paris", "days": 5}}]',
        PARIS,
    ),
    ('[TOOL_CALLS] [{"city": "Paris", "days": 5}] [/TOOL_CALLS]', PARIS),
    ('[TOOL_CALLS] [{"city": "Paris"}, {"city": "Rome"}]', REFUSED),
    ('[TOOL_CALLS] [{"city": "Paris"}] and more', REFUSED),
    ('{"city": "Paris"}[city]', REFUSED),
    ('The {city} is {"city": "Paris"}', REFUSED),
    ('{"city": "Paris"} or {"city": "Rome"}', REFUSED),
    ('{"city": "Paris"}{"city": "Paris"}', {"city": "Paris"}),
    ('{}{"city": "Paris"}', {"city": "Paris"}),
    ('{"city": "Paris"}\n{"days": 5}', REFUSED),
    ('{"city": "Paris"}, "days": 5}', REFUSED),
    ('"arguments": {"city": "Paris"}', REFUSED),
    ('5, {"city": "Paris"}', REFUSED),
    ('{"city": "Paris"}["city"]', REFUSED),
    ('{"city": "Paris"}.get("city")', REFUSED),
    ('{"city": "Paris"} | other', REFUSED),
    ('dict({"city": "Paris"}, days=5)', REFUSED),
    ('f\'{"city": "Paris"}\'', REFUSED),
    ('{"city": "Paris", "days": 5}}', PARIS),
    ('{"City": "Paris", "days": 5}}', PARIS),
    ('{"city": "Paris", "id": 5}}', REFUSED),
    ('{"o": {"a": {"b": 1}}, "city": "Paris"}}', REFUSED),
    ('{"city": "Paris", "o": {"a": 1}}}', {"city": "Paris", "o": {"a": 1}}),
    ('{"city": "Paris", "days": 5}]', PARIS),
    ('[{"city": "Paris", "days": 5}]', PARIS),
    ('[{"city": "Paris"}, {"city": "Rome"}]', REFUSED),
    ('"{\\"city\\": \\"Paris\\", \\"days\\": 5}"', PARIS),
    ('"\\"{\\\\\\"city\\\\\\": \\\\\\"Paris\\\\\\", \\\\\\"days\\\\\\": 5}\\""', PARIS),
    ('{\\"city\\": \\"Paris\\", \\"days\\": 5}', PARIS),
    ("\"{'city': 'Paris', 'days': '5',}\"", PARIS),
    (
        "{'city': 'Paris', 'days': 5, 'detail': True, 'tags': ('a', 'b')}",
        {**PARIS, "detail": True, "tags": ["a", "b"]},
    ),
    ("{'city': \"L'Aquila\", 'days': 5}", {"city": "L'Aquila", "days": 5}),
    ("{'city': 'L\\'Aquila', 'days': 5}", {"city": "L'Aquila", "days": 5}),
    ("{'city': 'L'Aquila', 'days': 5}", REFUSED),
    ('{"city": "the "big" one"}', REFUSED),
    ('{"city": "Paris" "France"}', REFUSED),
    ('{"city": "Paris" + "France"}', REFUSED),
    ("{'city': f'Paris'}", REFUSED),
    ("{'city': '''Paris'''}", REFUSED),
    ('{"city": city}', REFUSED),
    ('{city: "Paris", days: 5}', PARIS),
    ("{city: 'Paris', o: {a-b: 1, $c: 2}}", REFUSED),
    ("{city: 'Paris', o: {a-b: 1}}", {"city": "Paris", "o": {"a-b": 1}}),
    ("{city: Paris}", REFUSED),
    ("{None: 1}", REFUSED),
    ("{1: 'Paris'}", REFUSED),
    ("{city, days}", REFUSED),
    ('{city = "Paris"}', REFUSED),
    ("{“city”: “Paris”, “days”: 5}", PARIS),
    ("{‘city’: ‘Paris’, ‘days’: 5}", PARIS),
    ("{“city”: “it’s // {here}”}", {"city": "it’s // {here}"}),
    ("{“city”: “the “big” one”}", REFUSED),
    ('{“city”: “a"b”}', REFUSED),
    ("{“city”: “C:\\temp”}", REFUSED),
    ('{“city": "Paris”}', REFUSED),
    ('{"city": "“Paris”", "days": 5,}', {"city": "“Paris”", "days": 5}),
    ('{"city"："Paris"，"days"：5}', REFUSED),
    ('{"city": "Paris"、"days": 5}', REFUSED),
    ('"""\n{"city": "Paris", "days": 5}\n"""', PARIS),
    ('~~~json\n{"city": "Paris", "days": 5}\n~~~', PARIS),
    ('{"city": "Paris", "days": NaN}', REFUSED),
    ('{"city": "Paris", "days": 2+3}', REFUSED),
    ('{"city": "Paris", "days": 10/2}', REFUSED),
    ('{"city": "Paris", "days": 10//2\n}', REFUSED),
    ('{"city": "Paris", "days": 10 // 2\n}', REFUSED),
    ('{"city": "Paris", "days": 5 // five of them\n}', PARIS),
    ('{"city": "Paris", /* why not */ "days": 5 # five\n}', PARIS),
    ('{"city": "Paris", "days": 5} // done', PARIS),
    ('{"city": "Paris", "days": 05}', REFUSED),
    ('{"city": "Paris", "days": 1_000}', REFUSED),
    ('{"city": "Paris", "days": "5", "days": 5}', REFUSED),
    ('{"city": "Paris", "days": 5, "days": 5}', PARIS),
    ('{"city": "Paris", "days": 1, "days": true}', REFUSED),
    ('{"city": "Paris",, "days": 5}', REFUSED),
    ('{"city": "Paris", "days": 5,,}', REFUSED),
    ('{"city": "Paris", "tags": ["a",, "b"]}', REFUSED),
    ('{"city": "Paris", "detail": TRUE}', {"city": "Paris", "detail": True}),
    ('{"city": "Paris", "detail": FALSE}', {"city": "Paris", "detail": False}),
    ('{"city": "Paris", "days": NULL}', {"city": "Paris"}),
    ('{"city": "Paris", "o": {"n": .5}}', REFUSED),
    ('{"city": "Paris", "o": {"n": +5}}', REFUSED),
    ('{"city": "Paris"\n"days": 5}', REFUSED),
    # one quote of a key, or the quotes alone escaped
    ('{city": "Paris", days" : 5}', PARIS),
    ('{"city": \\"Paris\\", "days": 5}', PARIS),
    ('{"city": \\"Par"is\\", "days": 5}', REFUSED),
    ('{"city": "Paris" "days": 5}', REFUSED),
    ('{"city": "Par\nis"}', {"city": "Par\nis"}),
    ('{"city": "a,]b,}", "days": 5,}', {"city": "a,]b,}", "days": 5}),
    ('{"city": "// no", "days": 5,}', {"city": "// no", "days": 5}),
    ('{"city": "\\ud83d\\ude00", "days": 5,}', {"city": "😀", "days": 5}),
    ('{"city": "\\ud83d", "days": 5}', REFUSED),
    # a backslash that escapes nothing, in a string where none does
    ('{"city": "\\d"}', {"city": "\\d"}),
    ('{"city": "C:\\Users"}', {"city": "C:\\Users"}),
    ('{"city": "C:\\Users\\new"}', REFUSED),
    ('{"city": "\\d\\\\w"}', REFUSED),
    ('{"city": "\\d \\""}', REFUSED),
    ('{"city": "\\x41"}', REFUSED),
    ("{" * 5000, REFUSED),
    ('{"o": ' * 2000 + "1" + "}" * 2000, REFUSED),
    ("```\n" * 3000 + '{"city": "Paris", "days": 5}' + "\n```" * 3000, PARIS),
    ("Paris", REFUSED),
    ("[]", REFUSED),
    ("5", REFUSED),
    ("", REFUSED),
    ("null", REFUSED),
    # quotes that JSON does not have: what a backslash inside them means is unknown
    (r"""'{"city": "C:\\temp"}'""", REFUSED),
    (r"""\'\'\'{"city": "C:\\temp"}\'\'\'""".replace("\\'", "'"), REFUSED),
    (r"""`{"city": "C:\\temp"}`""", REFUSED),
    (r"""'{"city": "say \"hi\""}'""", REFUSED),
    (r"""'{"city": "a\/b"}'""", REFUSED),
    (r"""'{"city": "C:\\\\temp"}'""", REFUSED),
    (r"""'{"city": "C:\\qux"}'""", REFUSED),
    ('`{"city": "Paris", "days": 5}`', PARIS),
    # a value beside the object
    ('{"city": "Paris"}\n"days": 5', REFUSED),
    ('{"city": "Paris"} days=5', REFUSED),
    ('{"city": "Paris"}, days=5', REFUSED),
    ('days: 5\n{"city": "Paris"}', REFUSED),
    ('**city**: Rome\n{"city": "Paris"}', REFUSED),
    ('"note": "by train"\n{"city": "Paris"}', REFUSED),
    ('<parameter name="city">Rome</parameter>{"city": "Paris"}', REFUSED),
    ('<city>Rome</city>\n{"city": "Paris"}', REFUSED),
    ('days: 5\n{"city": "Paris", "days": 5}', PARIS),
    ('city = "Paris", as you asked.\n{"city": "Paris", "days": 5}', REFUSED),
    ('I will call it with city: {"city": "Paris", "days": 5}', PARIS),
    ('city:\n```json\n{"city": "Paris", "days": 5}\n```', REFUSED),
    ('City: any.\nAction Input: {"city": "Paris", "days": 5}', REFUSED),
    ('Note: the days are 5.\n{"city": "Paris", "days": 5}', PARIS),
    ('Note: days: 5\n{"city": "Paris"}', REFUSED),
    ('Args: city=Rome {"city": "Paris"}', REFUSED),
    ('{"city": "Paris"}\n\u201cdays\u201d\uff1a5', REFUSED),
    ('<arg_key>days</arg_key><arg_value>5</arg_value>{"city": "Paris"}', REFUSED),
    ('<param name="days" value="5"/>{"city": "Paris"}', REFUSED),
    ('{"city": "Paris"} // days: 5', {"city": "Paris"}),
    ('{"city": "Paris", "days": 5} // days: 5', PARIS),
    # a text that says not to
    ('I cannot call {"city": "Paris"}', REFUSED),
    ('No llames {"city": "Paris"}', REFUSED),
    ('N\'appelez pas {"city": "Paris"}', REFUSED),
    ('\u4e0d\u8c03\u7528 {"city": "Paris"}', REFUSED),
    ('Never mind, here: {"city": "Paris", "days": 5}', REFUSED),
    ('Do not call {"city": "Paris"}', REFUSED),
    ('Don\'t use this: {"city": "Paris"}', REFUSED),
    ('Never send\n```json\n{"city": "Paris"}\n```', REFUSED),
    ('Instead of {"city": "Paris"} ask again', REFUSED),
    ('Nicht aufrufen: {"city": "Paris"}', REFUSED),
    ('\u4e0d\u8981\u8c03\u7528 {"city": "Paris"}', REFUSED),
    ('I could not find it. Trying again: {"city": "Paris", "days": 5}', PARIS),
    # cut off
    ('{"city": "Paris", "days": 5', CUT_OFF),
    ('{"city": "Paris", "days": 5.', CUT_OFF),
    ('{"city": "Paris", "days": 1e', CUT_OFF),
    ('{"city": "Paris", "days": -', CUT_OFF),
    ('{"city": "Paris", "days": 5 ', CUT_OFF),
    ('{"city": "Paris",', CUT_OFF),
    ('{"city": "Paris", "da', CUT_OFF),
    ('{"city": "Paris", "days"', CUT_OFF),
    ('{"city": "Paris", "days":', CUT_OFF),
    ('{"city": "Paris", "detail": tr', CUT_OFF),
    ('{"city": "Paris", "tags": ["a"', CUT_OFF),
    ('{"city": "Paris", "tags": ["a",', CUT_OFF),
    ('{"city": "Paris", "o": {"a": "b"', CUT_OFF),
    ('{"city": "Par', CUT_OFF),
    ("{city: 'Paris', da", CUT_OFF),
    ("{“city”: “Par", CUT_OFF),
    ('{"city": "Par\\', CUT_OFF),
    ('{"city": "Par\\u00', CUT_OFF),
    ('{"city": "Paris" /* and', CUT_OFF),
    ("{", CUT_OFF),
    ('"{\\"city\\": \\"Par', CUT_OFF),
    ('Here you are: {"city": "Par', CUT_OFF),
    ('```json\n{"city": "Par', CUT_OFF),
]


UNCLOSED: list[tuple[str, Any]] = [
    ('{"city": "Paris"', {"city": "Paris"}),
    ('{"city": "Paris", "detail": true', {"city": "Paris", "detail": True}),
    ('{"city": "Paris", "tags": ["a"]', {"city": "Paris", "tags": ["a"]}),
    ('{"city": "Paris", "o": {"a": {"b": 1}}', {"city": "Paris", "o": {"a": {"b": 1}}}),
    ('```json\n{"city": "Paris"\n```', {"city": "Paris"}),
    ('{"city": "Paris}"', CUT_OFF),
    ('{"city": "Paris]"', CUT_OFF),
    ('{"o": {"a": "b}"}', CUT_OFF),
    ('{"city": "Paris", "days": 5', CUT_OFF),
    ('{"city": "Paris",', CUT_OFF),
    ('{"city": "Paris", "o": {"a": "b"', CUT_OFF),
]


@pytest.mark.parametrize(
    "reason",
    ["stop", "tool_calls", "function_call", "end_turn", "tool_use", "STOP", "eos"],
)
@pytest.mark.parametrize(("raw", "expected"), UNCLOSED, ids=lambda each: str(each)[:50])
def test_a_last_brace_is_added_if_the_model_stopped_by_itself(
    raw: str, expected: Any, reason: str
) -> None:
    """DESIGN: only the last brace is missing, and the caller says that the model
    stopped by itself.
    """
    assert_outcome(CALL, raw, expected, finish_reason=reason)


@pytest.mark.parametrize(
    "reason",
    [None, "", "length", "stop_sequence", "Stop", "eos_token", "other", "unknown"],
)
@pytest.mark.parametrize("raw", [raw for raw, _ in UNCLOSED], ids=lambda raw: raw[:50])
def test_otherwise_a_text_without_its_last_brace_was_cut_off(
    raw: str, reason: str | None
) -> None:
    """A quarter of all calls have a place right after a closed value where a cut looks
    the same.
    """
    assert_outcome(CALL, raw, CUT_OFF, finish_reason=reason)


def test_several_calls_in_one_text_are_refused() -> None:
    """One of them would be lost."""
    text = (
        "<tool_call>\n"
        '{"city": "Paris"}\n'
        "</tool_call>\n"
        "<tool_call>\n"
        '{"city": "Rome",}\n'
        "</tool_call>"
    )

    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": CALL}).accept(text)

    assert (
        caught.value.to_errors()[0].suggested_action
        == "Send one call at a time, each as exactly one JSON object"
    )


@pytest.mark.parametrize(("raw", "expected"), TEXTS, ids=lambda each: str(each)[:50])
def test_a_text_is_repaired_if_it_can_be_read_in_one_way_only(
    raw: str, expected: Any
) -> None:
    """DESIGN: syntax is repaired, flagged; two objects, arithmetic, variables and
    whatever is cut off are refused.
    """
    assert_outcome(CALL, raw, expected)


@pytest.mark.parametrize(
    "raw", ["", " ", "null", "{}", "[]", '{"input": {}}', '""', "```\n{}\n```"]
)
def test_no_arguments_are_an_empty_object_where_nothing_is_required(raw: str) -> None:
    """DESIGN: "" or no arguments, as models send for tools without parameters: {}."""
    assert_outcome(closed(""), raw, {})


@pytest.mark.parametrize(
    "reason", ["length", "max_tokens", "MAX_TOKENS", "content_filter", "incomplete"]
)
def test_what_the_provider_says_was_cut_off_is_refused_though_it_is_whole(
    reason: str,
) -> None:
    """DESIGN: finish_reason is length: always refuse, with its own code."""
    assert_outcome(CALL, '{"city": "Paris"}', CUT_OFF, finish_reason=reason)
    assert_outcome(CALL, {"city": "Paris"}, CUT_OFF, finish_reason=reason)
    assert_outcome(
        CALL, '{"city": "Paris"}', {"city": "Paris"}, finish_reason="tool_calls"
    )


POLICIES: list[tuple[Any, Any, Any]] = [
    ("strict", {"city": "Paris", "days": "5"}, REFUSED),
    ("strict", '```\n{"city": "Paris"}\n```', REFUSED),
    ("strict", '{"city": "Paris"', CUT_OFF),
    ("strict", '```json\n{"city": "Paris"\n```', CUT_OFF),
    ("strict", '"{\\"city\\": \\"Paris\\""', CUT_OFF),
    ("strict", '{city: "Paris"}', REFUSED),
    ("strict", '{"city": "Par', CUT_OFF),
    ("strict", PARIS, PARIS),
    ("lenient", {**PARIS, "mood": "good"}, PARIS),
    ("lenient", {**PARIS, "detail": "on"}, REFUSED),
    ("lenient", {**PARIS, "details": True}, REFUSED),
    ("lenient", {"city": "Paris", "days": "5.7"}, REFUSED),
    ("lenient", {"mood": "good"}, REFUSED),
    ({"on_unknown": "drop"}, {**PARIS, "mood": "good"}, PARIS),
    ({"on_unknown": "drop"}, {**PARIS, "detail": "on"}, REFUSED),
    ({"repair": False, "on_unknown": "drop"}, {**PARIS, "mood": "good"}, REFUSED),
]


@pytest.mark.parametrize(("policy", "value", "expected"), POLICIES, ids=str)
def test_a_policy_says_how_far_repair_goes(
    policy: Any, value: Any, expected: Any
) -> None:
    """A name or a record of switches, per call; a key dropped must not be a parameter
    misspelt.
    """
    assert_outcome(CALL, value, expected, policy=policy)


CORPUS: list[dict[str, Any]] = [
    {
        "city": "Paris",
        "days": 12,
        "detail": True,
        "tags": ["a", "b c"],
        "o": {"a": {"b": [1, 2.5, None]}, "c": "d"},
    },
    {"city": 'He said "hi", {ok} [1,2] // x', "tags": [], "o": {}, "days": -3},
    {
        "o": {"list": [{"a": "x"}, {"a": "y,}"}]},
        "city": "北京 \\ 'n' \n",
        "detail": False,
    },
]


def spellings(value: dict[str, Any]) -> list[str]:
    """Return *value* as models write it."""
    plain = json.dumps(value)
    return [
        plain,
        json.dumps(value, indent=2, ensure_ascii=False),
        json.dumps(value, separators=(",", ":")),
        repr(value),
        json.dumps(plain),
        plain.replace('"', '\\"') if "\\" not in plain else plain,
        f"```json\n{plain}\n```",
        f"Here are the arguments: {plain}",
        json.dumps({"name": "f", "arguments": value}),
        json.dumps({"arguments": plain}),
    ]


@pytest.mark.parametrize("value", CORPUS, ids=lambda value: value["city"][:8])
def test_every_spelling_of_a_call_is_read_and_every_beginning_of_one_is_refused(
    value: dict[str, Any],
) -> None:
    """A proper prefix is refused, unless all it lacks is what follows the object."""
    for text in spellings(value):
        assert_outcome(CALL, text, value)
        for end in range(1, len(text)):
            result = outcome(CALL, text[:end])
            assert result is REFUSED or result is CUT_OFF or is_same(result, value), (
                text[:end]
            )


@pytest.mark.parametrize("value", CORPUS, ids=lambda value: value["city"][:8])
def test_a_beginning_of_plain_json_says_that_it_was_cut_off(
    value: dict[str, Any],
) -> None:
    """Its code is TRUNCATED_INPUT at every cut."""
    for text in spellings(value)[:3]:
        for end in range(1, len(text)):
            result = outcome(CALL, text[:end])
            assert result is CUT_OFF, text[:end]
