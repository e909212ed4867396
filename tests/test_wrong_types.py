"""Values of a wrong type at public names: the error says what belongs there."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from skillruntime import (
    Contract,
    RateLimitError,
    SkillCatalog,
    SkillInputError,
    SkillMiddleware,
    SkillRuntime,
    SkillRuntimeError,
    ToolTimeoutError,
    Version,
    VersionRange,
    check_skill_compatibility,
    discover,
    skill,
)
from skillruntime.catalog import Root, validate
from skillruntime.contract import Migration, SkillInputValidator
from skillruntime.tokens import TokenLimits, count

CONTRACT = Contract.from_dict(
    {"version": "2.0.0", "input": {"properties": {"n": {"type": "integer"}}}},
    name="count",
)
OLD = Migration.from_function(
    lambda given: {"n": given["count"]}, to="2.0.0", source="1.x"
)

TO_NAMES = [
    (
        lambda: discover(3),
        "discover takes directories, one by one or in one list: discover('skills', "
        "'more-skills'); got 3",
    ),  # type: ignore[arg-type]
    (lambda: discover(["skills", 3]), "got 3"),  # type: ignore[list-item]
    (lambda: discover(Root(None)), "discover takes directories"),  # type: ignore[arg-type]
    (
        lambda: validate(None),
        "validate takes the path of a skill or of a directory of skills; got None",
    ),  # type: ignore[arg-type]
    (
        lambda: SkillCatalog().search(3),
        "search takes words, such as 'fill pdf forms'; got 3",
    ),  # type: ignore[arg-type]
    (
        lambda: SkillRuntime(approve=True),  # type: ignore[arg-type]
        "approve takes a function; got True",
    ),
    (
        lambda: SkillRuntime(on_call=["log"]),  # type: ignore[list-item]
        "on_call takes a function; got 'log'",
    ),
    (
        lambda: SkillMiddleware(SkillRuntime(), tools=[len]),
        "the agent's other tools go to create_agent; got [<",
    ),  # type: ignore[arg-type]
    (
        lambda: SkillMiddleware(SkillRuntime(), max_active=None),
        "max_active must be at least 1; got None",
    ),  # type: ignore[arg-type]
    (lambda: Version.parse(None), "'None' is not a semantic version"),  # type: ignore[arg-type]
    (
        lambda: VersionRange.parse(3),
        "3 is not a version range; write one such as '>=1.0.0,<2.0.0'",
    ),  # type: ignore[arg-type]
    (
        lambda: SkillRuntime(timeout="5"),
        "timeout is a number of seconds, or None; got '5'",
    ),  # type: ignore[arg-type]
    (
        lambda: SkillRuntime().call_sync("a", timeout=float("nan")),
        "timeout must be 0 seconds or more; got nan",
    ),
    (
        lambda: SkillInputValidator(3),
        "SkillInputValidator takes a JSON Schema, as a dict; got 3",
    ),  # type: ignore[arg-type]
    (
        lambda: check_skill_compatibility("", ""),
        "the current version is empty; give one such as '3.1.2'",
    ),
    (
        lambda: check_skill_compatibility(None, "1.0.0"),
        "a requirement and a version are texts",
    ),  # type: ignore[arg-type]
    (
        lambda: TokenLimits(""),
        "catalog_tokens is a number of tokens, 0 or more, or None for no limit; got ''",
    ),  # type: ignore[arg-type]
    (lambda: TokenLimits(page_tokens=-1), "page_tokens is a number of tokens"),
    (
        lambda: pickle.dumps(SkillCatalog()),
        "a SkillCatalog cannot be pickled: it describes files; call discover in",
    ),
    (
        lambda: pickle.dumps(SkillRuntime().session()),
        "a SkillSession cannot be pickled: it holds locks",
    ),
    (
        lambda: pickle.dumps(CONTRACT.with_migration(OLD)),
        "cannot be pickled: with_migration added a function",
    ),
    (lambda: count(None), "count takes a text; got None"),  # type: ignore[arg-type]
    (
        lambda: count("a", 3),
        "model is the name of a model, or a function from text to tokens; got 3",
    ),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("use", "message"), TO_NAMES)
def test_a_wrong_type_is_explained(use: Callable[[], object], message: str) -> None:
    """Not by a text of Python's about something inside."""
    with pytest.raises((TypeError, ValueError)) as caught:
        use()

    assert message in str(caught.value)


@skill
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


@pytest.mark.parametrize(
    "again", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy, copy.deepcopy]
)
def test_contracts_and_skills_can_be_copied_and_pickled(
    again: Callable[[Any], Any],
) -> None:
    """A contract is its document, and a function is pickled by its name."""
    contract = again(CONTRACT)
    assert contract.accept('{"n": "3"}').arguments == {"n": 3}
    assert (contract.name, contract.to_dict()) == ("count", CONTRACT.to_dict())
    assert again(double) is double


@pytest.mark.parametrize(
    "again", [lambda error: pickle.loads(pickle.dumps(error)), copy.copy, copy.deepcopy]
)
@pytest.mark.parametrize(
    "error",
    [
        RateLimitError("Too many calls", retry_after=3.0),
        ToolTimeoutError("It took too long", details={"seconds": 5}),
        SkillInputError(
            "Input validation failed", errors=["'a' is a required property"]
        ),
    ],
)
def test_an_error_comes_out_of_another_process_as_it_was(
    error: SkillRuntimeError, again: Callable[[Any], Any]
) -> None:
    """A process pool breaks if it cannot read what a worker raised."""
    read = again(error)

    assert (type(read), str(read), read.to_errors()) == (
        type(error),
        str(error),
        error.to_errors(),
    )
