"""A text beside the object: an introduction is left out; what takes the object back or says otherwise is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.malformed import INTEGER, REFUSED, TEXT, assert_outcome, closed

CALL = closed("city", city=TEXT, days=INTEGER, max_items=INTEGER, query=TEXT, action=TEXT)
PARIS = {"city": "Paris", "days": 3}
OBJECT = '{"city": "Paris", "days": 3}'

TAKEN_BACK = [
    OBJECT + " DO NOT RUN",
    OBJECT + "\n\nWait, that is wrong. It should be Rome.",
    OBJECT + " is wrong.",
    OBJECT + "\nSorry, Rome.",
    OBJECT + "\nI meant Rome.",
    OBJECT + "\nUse Rome instead.",
    OBJECT + "\nMake it Rome.",
    OBJECT + "\n// rejected",
    OBJECT + "\nNo, Rome.",
    OBJECT + "\nRejected by the user.",
    "Rejected: " + OBJECT,
    "Invalid call: " + OBJECT,
    "Error: invalid arguments " + OBJECT,
    "No call needed. " + OBJECT,
    "No tool call is needed here. Arguments: " + OBJECT,
    "This call is wrong. " + OBJECT,
    "Wrong. Here is what I sent: " + OBJECT,
    "Falsch: " + OBJECT,
    OBJECT + "\n\u9519\u8bef",
    "```json\n" + OBJECT + "\n```\nIgnore that.",
    OBJECT + "\nThis is not the right call.",
    OBJECT + "\nActually, it must be Rome.",
    OBJECT + "\nPlease change the city to Rome.",
    OBJECT + "\nDon't execute this.",
    "This call is not needed. " + OBJECT,
    "I will not do this. " + OBJECT,
    "Never send " + OBJECT,
    "The arguments are malformed: " + OBJECT,
    "Instead of calling it with " + OBJECT,
    "<think>ok</think> Do not call " + OBJECT,
    "<think>maybe " + OBJECT + "</think>",
]


@pytest.mark.parametrize("text", TAKEN_BACK)
def test_a_text_that_rejects_or_corrects_the_object_is_refused(text: str) -> None:
    """Whether it comes before or after: a call that the model took back must not run."""
    assert_outcome(CALL, text, REFUSED)


OTHER_VALUES = [
    "city -> Rome",
    "city => Rome",
    "days\u21925",
    "days \u2192 5",
    "--days 5",
    '"days" 5',
    "`days` 5",
    "days are 5",
    "days 5",
    "5 days",
    "Days: 5",
    "DAYS = 5",
    "**Days**: 5",
    "| days | 5 |",
    "day: 5",
    "maxItems: 3",
    "max items: 3",
    "max-items=3",
    "The city is Rome.",
    "city should be Rome",
]


@pytest.mark.parametrize("text", OTHER_VALUES)
def test_another_value_of_a_declared_parameter_beside_the_object_is_refused(text: str) -> None:
    """In every form, before the object and after it: one of the two values would be lost."""
    assert_outcome(CALL, f"{OBJECT} {text}", REFUSED)
    assert_outcome(CALL, f"{OBJECT}\n{text}", REFUSED)
    assert_outcome(CALL, f"{text}\n{OBJECT}", REFUSED)


KEPT = [
    f"Here you are: {OBJECT} Hope this helps",
    f"Here you are: {OBJECT} Hope this helps!",
    f"Action Input: {OBJECT}",
    f"Thought: I need the weather.\nAction: get_weather\nAction Input: {OBJECT}",
    f"with this query: {OBJECT}",
    f"I will call the tool with these arguments: {OBJECT} This should answer the question.",
    f"Sure, here is the call: {OBJECT}",
    f"{OBJECT}\nLet me know when you need more.",
    f"{OBJECT}\nDon't hesitate to ask.",
    f"No problem, here: {OBJECT}",
    f"I could not find it. Trying again: {OBJECT}",
    f"days: 3\n{OBJECT}",
    f"The days are 3. Here is the call:\n```json\n{OBJECT}\n```",
    f"I look up the city for the user. {OBJECT}",
    f"I don't know the weather, so I need to call the tool: {OBJECT}",
    f"To answer this, I need the weather tool.\n\n{OBJECT}\n\nI will wait for the result.",
    f"Because the city was not specified, I assume Paris. {OBJECT}",
    f"She wants the weather in Paris, not London. {OBJECT}",
    f"I'll delete the old booking and cancel the alarm for you. {OBJECT}",
    f"To fix the error, I call the tool: {OBJECT}",
    f"{OBJECT}\nThis will also add the event, and update your plan or calendar.",
    f"{OBJECT}\nIf this does not help, ask me again.",
    f"<think>I should not call it with London. city=Rome would be wrong.</think>\n{OBJECT}",
    f"The days are 5, or the city is Rome?</think>\n\n{OBJECT}",
    f"The previous call was wrong, let me try again: {OBJECT}",
]


@pytest.mark.parametrize("text", KEPT)
def test_an_introduction_is_left_out(text: str) -> None:
    """Ordinary prose, or the same value once more, says nothing against the object."""
    assert_outcome(CALL, text, PARIS)


def test_a_long_text_beside_the_object_costs_little() -> None:
    """Its words are compared with the names by look-up: 50,000 characters at most are read."""
    words: Any = "days and city of " * 1000
    assert_outcome(CALL, words + OBJECT, PARIS)
    assert_outcome(CALL, OBJECT + words * 4, REFUSED)
