"""The forms in which a text holds a call, as tables: the text, and the arguments it
means, or that it is refused.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from skillruntime.contract import Contract
from skillruntime.errors import SkillInputError
from tests.contract.malformed import (
    CUT_OFF,
    INTEGER,
    OBJECT,
    REFUSED,
    TEXT,
    array,
    closed,
    either,
)

CALL = {"city": "Paris", "days": 3}
SENT = '{"city": "Paris", "days": 3}'
PARIS = {"city": "Paris"}
WEATHER = closed(
    "city",
    city=TEXT,
    days=INTEGER,
    filter=OBJECT,
    tags=array(TEXT),
    note=either(TEXT, {"type": "null"}),
)
OPEN = {"type": "object", "properties": {"filter": OBJECT, "page": INTEGER}}


def outcome(schema: dict[str, Any], raw: Any, name: str, **options: Any) -> Any:
    contract = Contract.from_dict({"input": schema}, name=name)
    try:
        return contract.accept(raw, fill_defaults=False, **options).arguments
    except SkillInputError as error:
        return CUT_OFF if error.code == "TRUNCATED_INPUT" else REFUSED


PROSE: list[tuple[str, Any]] = [
    # between sentences and lines
    (f"Here you are: {SENT} Hope this helps!", CALL),
    (
        f"I will call the tool with these arguments: {SENT}\n"
        "\n"
        "This should answer the question.",
        CALL,
    ),
    (f"I look up the city for the user. {SENT}", CALL),
    (f"Okay.\n{SENT}", CALL),
    (f"{SENT}\nLet me know when you need more.", CALL),
    (f"{SENT}. Anything else?", CALL),
    (f"{SENT}\n\n**Note** that I assumed Paris.", CALL),
    (f"他要查天气。{SENT}", CALL),
    (f"The previous call was wrong, so I try again: {SENT}", CALL),
    (f"She wants the weather in Paris, not London. {SENT}", CALL),
    (f"I could not find it. Trying again: {SENT}", CALL),
    (f"[Calling the weather tool]\n{SENT}", CALL),
    (f"Here (as asked): {SENT}", CALL),
    # inside a sentence
    (f"Do not call {SENT}", REFUSED),
    (f"You could call {SENT}", REFUSED),
    (f"Instead of calling it with {SENT}", REFUSED),
    (f"{SENT} is wrong", REFUSED),
    (f"{SENT} is wrong.", REFUSED),
    (f"{SENT} or Rome", REFUSED),
    (f"{SENT} 5 days", REFUSED),
    (f"{SENT}[0]", REFUSED),
    (f"{SENT}, days=5", REFUSED),
    (f"{SENT}\nas I said", REFUSED),
    # the first word of the sentence beside the object
    (f"Do not use this: {SENT}", REFUSED),
    (f"Don't use this one. {SENT}", REFUSED),
    (f"No problem. {SENT}", CALL),
    (f"Never send this:\n```json\n{SENT}\n```", REFUSED),
    (f"Do not worry:\n<tool_call>{SENT}</tool_call>", CALL),
    (f"Days are 5, no problem<tool_call>{SENT}</tool_call>after", CALL),
    (f"<tool_call>{SENT}</tool_call>Do not run it.", REFUSED),
    (f"{SENT}\n\nNever run this.", REFUSED),
    (f"```json\n{SENT}\n```\nDon't use it.", REFUSED),
    (f"<think>Do not call it.</think>Here it is: {SENT}", CALL),
    # labels
    (f"Arguments: {SENT}", CALL),
    (f"**Arguments:** {SENT}", CALL),
    (f"arguments = {SENT};", CALL),
    (f"get_weather: {SENT}", CALL),
    (f"get_weather\n{SENT}", CALL),
    (f"Old: {SENT}", REFUSED),
    (f"Error: {SENT}", REFUSED),
    (f"Example: {SENT}", REFUSED),
    (f"Result: {SENT}", REFUSED),
    (f"Rejected call:\n{SENT}", REFUSED),
    (f"get_time: {SENT}", REFUSED),
    (f"get_time\n{SENT}", REFUSED),
    (f'"arguments": {SENT}', REFUSED),
    (f"Old:\n```json\n{SENT}\n```", REFUSED),
    (f"get_time:\n```json\n{SENT}\n```", REFUSED),
    # a value of a parameter on a line of its own is not prose
    (f"days: 5\n{SENT}", REFUSED),
    (f"Days: 3\n{SENT}", CALL),
    (f"**Days**: 5\n{SENT}", REFUSED),
    (f"{SENT}\nDays: 5", REFUSED),
    (f"{SENT}\n--days 5", REFUSED),
    (f"<days>5</days>\n{SENT}", REFUSED),
    (f"{SENT}<days>5</days>", REFUSED),
    (f"Note: days -> 5\n{SENT}", REFUSED),
    # marks inside the object's own strings do not count
    (
        '{"city": "</think> </tool_call> ``` <|message|>", "days": 3,}',
        {"city": "</think> </tool_call> ``` <|message|>", "days": 3},
    ),
    (
        'Here it is: {"city": "Observation: {x} <think>", "days": 3}',
        {"city": "Observation: {x} <think>", "days": 3},
    ),
    # several
    (f"{SENT}\n{SENT}", CALL),
    (f'{SENT}{{"city": "Paris", "days": 4}}', REFUSED),
    (f"<tool_call>{SENT}</tool_call>\n<tool_call>{SENT}</tool_call>", REFUSED),
    ("Nothing to call.", REFUSED),
]


@pytest.mark.parametrize(
    ("text", "expected"), PROSE, ids=[repr(text)[:70] for text, _ in PROSE]
)
def test_prose_is_judged_by_its_form(text: str, expected: Any) -> None:
    """An object in prose is a call between two sentences or lines; of the words only
    one decides.
    """
    assert outcome(WEATHER, text, "get_weather") == expected


INTRODUCTIONS = [
    "Searching for flights without stops:",
    "Looking for a hotel, not a hostel:",
    "Checking errors in the last failed build:",
    "I can't know the weather, so I look it up:",
    "Let me look up the invalid entries:",
    "Deleting the obsolete branch:",
    "The user does not want sugar, so I search for that:",
    "Retrying, since the first call failed:",
    "Let me check:",
    "I'm going to cancel the wrong order:",
]


@pytest.mark.parametrize("sentence", INTRODUCTIONS)
def test_a_sentence_before_a_fence_introduces_the_call(sentence: str) -> None:
    """Whatever its words are: they say what the call is for."""
    assert outcome(WEATHER, f"{sentence}\n```json\n{SENT}\n```", "get_weather") == CALL


NAMED_PARAMETERS = [
    '<function=list><parameter=filter>{"status": "open"}</parameter></function>',
    '<invoke name="list"><parameter name="filter">{"status": '
    '"open"}</parameter></invoke>',
    "list(filter={'status': 'open'})",
    'filter: {"status": "open"}',
    '--filter {"status": "open"}',
    '<filter>{"status": "open"}</filter>',
    'filter:\n```json\n{"status": "open"}\n```',
    'filter = {"status": "open"}',
]


@pytest.mark.parametrize("text", NAMED_PARAMETERS)
def test_the_object_of_a_named_parameter_is_that_parameter(text: str) -> None:
    """In an open schema its members would fit as the arguments themselves."""
    assert outcome(OPEN, text, "list") in ({"filter": {"status": "open"}}, REFUSED)


@pytest.mark.parametrize("text", NAMED_PARAMETERS[:3])
def test_a_parameter_in_a_template_is_read(text: str) -> None:
    """The template names it."""
    assert outcome(OPEN, text, "list") == {"filter": {"status": "open"}}


NAMES: list[tuple[str, Any]] = [
    (f"name: get_weather\narguments: {SENT}", CALL),
    (f"name: send_mail\narguments: {SENT}", REFUSED),
    (f"<tool_name>get_weather</tool_name>\n<arguments>{SENT}</arguments>", CALL),
    (f"<tool_name>send_mail</tool_name>\n{SENT}", REFUSED),
    (f"Thought: I need it.\nAction: get_weather\nAction Input: {SENT}", CALL),
    (f"Action: send_mail\nAction Input: {SENT}", REFUSED),
    (f"<get_weather>{SENT}</get_weather>", CALL),
    (f"<send_mail>{SENT}</send_mail>", REFUSED),
    (f"<function=get_weather>{SENT}</function>", CALL),
    (f"<function=send_mail>{SENT}</function>", REFUSED),
    (f'<function name="send_mail">{SENT}</function>', REFUSED),
    (f"[TOOL_CALLS]send_mail[ARGS]{SENT}", REFUSED),
    (
        "<|start|>assistant<|channel|>commentary "
        f"to=functions.send_mail<|message|>{SENT}<|call|>",
        REFUSED,
    ),
    (f"<tool_call>send_mail\n{SENT}</tool_call>", REFUSED),
    ("send_mail(city='Paris')", REFUSED),
    (f"mcp__other__get_weather: {SENT}", CALL),
]


@pytest.mark.parametrize(
    ("text", "expected"), NAMES, ids=[repr(text)[:60] for text, _ in NAMES]
)
def test_a_call_of_another_tool_is_refused(text: str, expected: Any) -> None:
    """Whether the name stands on a line, in an element or in a mark; a contract without
    a name takes any.
    """
    assert outcome(WEATHER, text, "get_weather") == expected


@pytest.mark.parametrize(
    ("name", "tool", "is_same"),
    [
        ("docx/extract", "pdf/extract", False),
        ("mcp__gitlab__x", "mcp__github__x", False),
        ("mcp__github__x", "mcp__github__x", True),
        ("extract", "pdf/extract", True),
        ("pdf_extract", "pdf/extract", True),
        ("functions.get_weather:0", "get_weather", True),
        ("getWeather", "get_weather", True),
    ],
)
def test_a_name_is_compared_whole(name: str, tool: str, is_same: bool) -> None:
    """Where both have a prefix it must be the same."""
    text = json.dumps({"name": name, "arguments": {"city": "Paris"}})

    assert outcome(closed(city=TEXT), text, tool) == (
        {"city": "Paris"} if is_same else REFUSED
    )


VARIANTS: list[tuple[str, Any]] = [
    # Gemma 4 and FunctionGemma: strings between tokens, names without quotes
    # (openvinotoolkit/model_server#4179)
    ('<|tool_call>call:get_weather{city:<|"|>Paris<|"|>,days:3}<tool_call|>', CALL),
    (
        '<|tool_call>call:get_weather{city:<|"|>{a}, [b]: "c"<|"|>}<tool_call|>',
        {"city": '{a}, [b]: "c"'},
    ),
    (
        "<|channel>thought\n"
        "Maybe "
        '{x}.<channel|><|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        PARIS,
    ),
    (
        "<start_function_call>call:get_weather{city:<escape>Paris<escape>,days:3}"
        "<end_function_call>",
        CALL,
    ),
    ('<|tool_call>call:send_mail{city:<|"|>Paris<|"|>}<tool_call|>', REFUSED),
    ('<|tool_call>call:get_weather{city:<|"|>Par', REFUSED),
    (
        "<|channel>thought\n"
        '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>',
        REFUSED,
    ),
    # the mark of a parameter in place of the call's (signalnine/q27#24)
    (
        "<parameter=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>",
        PARIS,
    ),
    ("<parameter=note>\n<parameter=city>\nParis\n</parameter>\n</function>", REFUSED),
    # an empty object before the call, of a server that puts it together
    # (ogx-ai/ogx#5462)
    ('{}{"city": "Paris"}', PARIS),
    ('{"city": "Paris"}{}', REFUSED),
    ('{}{"city": "Paris"}{"city": "Rome"}', REFUSED),
    # the end of a turn, cut off behind a bracket too many (vllm-project/vllm#51701)
    ('{"city": "Paris"}}</s', PARIS),
    ('{"city": "Paris"}</s or not', REFUSED),
]


@pytest.mark.parametrize(
    ("text", "expected"), VARIANTS, ids=[repr(text)[:90] for text, _ in VARIANTS]
)
def test_forms_of_few_models_are_read(text: str, expected: Any) -> None:
    """What other models and servers write, each from a template or a public report."""
    assert outcome(WEATHER, text, "get_weather") == expected


def test_an_empty_object_that_may_be_a_call_is_not_skipped() -> None:
    """Where nothing is required, two objects are two calls."""
    assert outcome(OPEN, '{}{"page": 1}', "list") == REFUSED
    contract = Contract.from_schema(OPEN, name="list")
    with pytest.raises(SkillInputError, match="there are 2 calls in one text"):
        contract.accept('{}{"page": 1}')


HARMONY: list[tuple[str, Any]] = [
    (
        "<|start|>assistant<|channel|>commentary to=functions.get_weather "
        f"<|constrain|>json<|message|>{SENT}<|call|>",
        CALL,
    ),
    (
        "<|start|>assistant to=functions.get_weather<|channel|>commentary "
        f"json<|message|>{SENT}<|call|>",
        CALL,
    ),
    (f"<|channel|>analysis to=functions.get_weather<|message|>{SENT}<|call|>", CALL),
    (
        "<|channel|>analysis<|message|>Maybe "
        "{x}.<|end|><|start|>assistant<|channel|>commentary "
        f"to=functions.get_weather<|message|>{SENT}<|call|>",
        CALL,
    ),
    (f"<|channel|>commentary<|message|>{SENT}<|end|>", REFUSED),
    (f"<|channel|>analysis<|message|>{SENT}<|end|>", REFUSED),
    (f"<|channel|>final<|message|>{SENT}<|return|>", REFUSED),
    (f"<|channel|>final to=functions.get_weather<|message|>{SENT}<|return|>", REFUSED),
    (
        "<|start|>functions.get_weather "
        f"to=assistant<|channel|>commentary<|message|>{SENT}<|end|>",
        REFUSED,
    ),
    (f"<|start|>user<|message|>{SENT}<|end|>", REFUSED),
    (
        f"<|start|>assistant<|channel|>commentary to=python<|message|>{SENT}<|call|>",
        REFUSED,
    ),
]


@pytest.mark.parametrize(
    ("text", "expected"), HARMONY, ids=[repr(text)[:90] for text, _ in HARMONY]
)
def test_a_harmony_message_to_this_tool_is_its_call(text: str, expected: Any) -> None:
    """A message of the assistant with a recipient, on `commentary` or `analysis`, as
    OpenAI's format has it.
    """
    assert outcome(WEATHER, text, "get_weather") == expected


HIDDEN: list[tuple[str, Any]] = [
    (f"<think>{SENT}</think>", REFUSED),
    (f"<think>{SENT}", REFUSED),
    (f"{SENT}</think>", REFUSED),
    (f"◁think▷{SENT}◁/think▷", REFUSED),
    (f"<analysis>{SENT}</analysis>", REFUSED),
    (f"<|begin_of_thought|>{SENT}<|end_of_thought|>", REFUSED),
    (f"I call it: {SENT}\nFinal Answer: it is sunny", REFUSED),
    (f"Final Answer: {SENT}", REFUSED),
    (f"<tool_response>{SENT}</tool_response>", REFUSED),
    (f"<tool_response>\n{SENT}\n</tool_response>\nIt is sunny.", REFUSED),
    (f"Observation: {SENT}", REFUSED),
    (f"Tool output: {SENT}", REFUSED),
    (f"[TOOL_RESULTS]{SENT}[/TOOL_RESULTS]", REFUSED),
    (f"<|im_start|>tool\n{SENT}<|im_end|>", REFUSED),
    # a call behind closed reasoning, or behind a result
    (f'<think>Maybe {{"city": "Rome"}}</think><tool_call>{SENT}</tool_call>', CALL),
    (f"<think>Maybe {{Rome}}</think>{SENT}", CALL),
    (f"The days are {{5}}?</think>\n\n{SENT}", CALL),
    (f'{{"city": "Rome"}}</think>{SENT}', CALL),
    (f"◁think▷{{}}◁/think▷{SENT}", CALL),
    (
        f'<tool_response>{{"temperature": 20}}</tool_response>\n'
        f"<tool_call>{SENT}</tool_call>",
        CALL,
    ),
    (
        f'Observation: {{"temperature": 20}}\n'
        "Thought: Now Paris.\n"
        "Action: get_weather\n"
        f"Action Input: {SENT}",
        CALL,
    ),
    (
        f'<tool_call>{{"city": '
        f'"Rome"}}</tool_call><tool_response>1</tool_response><tool_call>{SENT}</tool_call>',
        CALL,
    ),
    (f"Action: get_weather\nAction Input: {SENT}\nObservation: sunny", CALL),
]


@pytest.mark.parametrize(
    ("text", "expected"), HIDDEN, ids=[repr(text)[:70] for text, _ in HIDDEN]
)
def test_reasoning_and_results_hold_no_calls(text: str, expected: Any) -> None:
    """A call behind them is the call."""
    assert outcome(WEATHER, text, "get_weather") == expected


PYTHON: list[tuple[str, Any]] = [
    ("get_weather(city='Paris', days=3)", CALL),
    ('get_weather(city="Paris", days=3,)', CALL),
    ("[get_weather(city='Paris', days=3)]", CALL),
    ("<|python_tag|>get_weather(city='Paris', days=3)", CALL),
    ("```tool_code\nget_weather(city='Paris', days=3)\n```", CALL),
    ("<think>Now.</think>\nget_weather(city='Paris', days=3)", CALL),
    ("default_api.get_weather(city='Paris', days=3)", CALL),
    (
        "get_weather(city='Paris', tags=['a', 'b'], note=None)",
        {"city": "Paris", "tags": ["a", "b"], "note": None},
    ),
    ("get_weather()", REFUSED),
    ("I call get_weather(city='Paris')", REFUSED),
    ("get_weather(city='Paris') for you", REFUSED),
    ("```python\nget_weather(city='Paris')\n```", REFUSED),
    ("get_weather('Paris')", REFUSED),
    (f"get_weather({SENT})", REFUSED),
    ("get_weather(**{'city': 'Paris'})", REFUSED),
    ("get_weather(city=city)", REFUSED),
    ("get_weather(city='Paris', city='Rome')", REFUSED),
    ("get_weather(city='Paris', city='Paris')", REFUSED),
    ("get_weather(city='Paris'); get_weather(city='Rome')", REFUSED),
    ("[get_weather(city='Paris'), get_weather(city='Rome')]", REFUSED),
    ("get_time(city='Paris')", REFUSED),
    ("get_weather(city='Par", CUT_OFF),
    (r'get_weather(city="a\/b")', REFUSED),
]


@pytest.mark.parametrize(
    ("text", "expected"), PYTHON, ids=[repr(text)[:60] for text, _ in PYTHON]
)
def test_a_python_call_is_read_if_it_is_the_whole_text(
    text: str, expected: Any
) -> None:
    """With literals by keyword, alone or in the marks of Llama and Gemma."""
    assert outcome(WEATHER, text, "get_weather") == expected


FINISHED: list[tuple[str, Any]] = [
    (f'<tool_call>\n{{"name": "get_weather", "arguments": {SENT}\n</tool_call>', CALL),
    ('<tool_call>{"city": "Paris"</tool_call>', {"city": "Paris"}),
    ('<tool_call>{"city": "Paris}"</tool_call>', CUT_OFF),
    ('<tool_call>{"city": "Paris", "days": 3</tool_call>', REFUSED),
    ('<tool_call>{"city": "Paris",</tool_call>', CUT_OFF),
    ('<tool_call>{"filter": {"a": "b"</tool_call>', CUT_OFF),
]


@pytest.mark.parametrize(
    ("text", "expected"), FINISHED, ids=[repr(text) for text, _ in FINISHED]
)
def test_the_last_brace_may_be_missing_before_the_end_of_a_call(
    text: str, expected: Any
) -> None:
    """Only where the caller says that the model stopped by itself."""
    assert outcome(WEATHER, text, "get_weather", finish_reason="stop") == expected
    assert outcome(WEATHER, text, "get_weather") in (REFUSED, CUT_OFF)


def test_a_path_with_backslashes_is_refused_with_what_to_write() -> None:
    r"""In ``C:\Users\foo`` one backslash is an escape of JSON and the other is none."""
    with pytest.raises(SkillInputError) as caught:
        Contract.from_dict({"input": closed(path=TEXT)}).accept(
            '{"path":"C:\\Users\\foo"}'
        )

    assert (
        "write each backslash of a text as \\\\, or a path with /"
        in str(caught.value.to_errors()[0].suggested_action).casefold()
    )


@pytest.mark.parametrize(
    "part",
    [
        "<tool_call>a",
        "{",
        "<think>",
        "{}",
        "<name>",
        "  ",
        "a: ",
        "[TOOL_CALLS]a",
        "<|start|>",
        "</think>{",
        "```",
        "```\n{",
        "f(",
        "{'</think>",
        "{/*</think>",
    ],
)
@pytest.mark.quick_cases(
    ["<tool_call>a", "<think>", "a: ", "</think>{", "```", "{'</think>"]
)
def test_a_long_hostile_text_is_refused(part: str) -> None:
    """Each reader takes linear time; a square one would not end here."""
    assert outcome(WEATHER, "x " + part * 30_000, "get_weather") in (REFUSED, CUT_OFF)
    assert outcome(WEATHER, part * 30_000, "get_weather") in (REFUSED, CUT_OFF)
