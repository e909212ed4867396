"""Values of a wrong type at public names: the error says what belongs there."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from skillruntime import (
    RateLimitError,
    SkillCatalog,
    SkillInputError,
    SkillMiddleware,
    SkillRuntime,
    SkillRuntimeError,
    ToolTimeoutError,
    Version,
    VersionRange,
    discover,
)
from skillruntime.catalog import Root, validate
from skillruntime.tokens import count

TO_NAMES = [
    (lambda: discover(3), "discover takes directories, one by one: discover('skills', 'more-skills'); got 3"),  # type: ignore[arg-type]
    (lambda: discover(["a", "b"]), "got ['a', 'b']"),  # type: ignore[arg-type]
    (lambda: discover(Root(None)), "discover takes directories"),  # type: ignore[arg-type]
    (lambda: validate(None), "validate takes the path of a skill or of a directory of skills; got None"),  # type: ignore[arg-type]
    (lambda: SkillCatalog().search(3), "search takes words, such as 'fill pdf forms'; got 3"),  # type: ignore[arg-type]
    (lambda: SkillRuntime(approve=True), "approve takes a function; got True"),  # type: ignore[arg-type]
    (lambda: SkillRuntime(on_call=["log"]), "on_call takes a function; got 'log'"),  # type: ignore[list-item]
    (lambda: SkillMiddleware(SkillRuntime(), tools=[len]), "the agent's other tools go to create_agent; got [<"),  # type: ignore[arg-type]
    (lambda: SkillMiddleware(SkillRuntime(), max_active=None), "max_active must be at least 1; got None"),  # type: ignore[arg-type]
    (lambda: Version.parse(None), "'None' is not a semantic version"),  # type: ignore[arg-type]
    (lambda: VersionRange.parse(3), "3 is not a version range; write one such as '>=1.0.0,<2.0.0'"),  # type: ignore[arg-type]
    (lambda: SkillRuntime(timeout="5"), "timeout is a number of seconds, or None; got '5'"),  # type: ignore[arg-type]
    (lambda: SkillRuntime().call_sync("a", timeout=float("nan")), "timeout must be 0 seconds or more; got nan"),
    (lambda: count(None), "count takes a text; got None"),  # type: ignore[arg-type]
    (lambda: count("a", 3), "model is the name of a model, or a function from text to tokens; got 3"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("use", "message"), TO_NAMES)
def test_a_wrong_type_is_explained(use: Callable[[], object], message: str) -> None:
    """Not by a text of Python's about something inside."""
    with pytest.raises((TypeError, ValueError)) as caught:
        use()

    assert message in str(caught.value)


@pytest.mark.parametrize("again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize(
    "error",
    [
        RateLimitError("Too many calls", retry_after=3.0),
        ToolTimeoutError("It took too long", details={"seconds": 5}),
        SkillInputError("Input validation failed", errors=["'a' is a required property"]),
    ],
)
def test_an_error_comes_out_of_another_process_as_it_was(error: SkillRuntimeError, again: Callable[[Any], Any]) -> None:
    """A process pool breaks if it cannot read what a worker raised."""
    read = again(error)

    assert (type(read), str(read), read.to_errors()) == (type(error), str(error), error.to_errors())
