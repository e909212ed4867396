"""Old versions whose calls are taken for a limited time."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime import Contract
from skillruntime.errors import InvalidSkillError

TEXT = {"type": "string"}


def document(**deprecated: str) -> dict[str, Any]:
    def closed(name: str) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {name: TEXT},
            "additionalProperties": False,
        }

    return {
        "version": "2.0.0",
        "input": closed("b"),
        "deprecated": deprecated,
        "migrations": [
            {
                "from": ">=1.0.0,<2.0.0",
                "to": "2.0.0",
                "accepts": closed("a"),
                "steps": [{"rename": {"from": "/a", "to": "/b"}}],
            }
        ],
    }


@pytest.mark.parametrize("version", [None, "1.2.0"])
def test_a_call_of_a_deprecated_version_is_taken_with_a_warning(
    version: str | None,
) -> None:
    """Whether it states its version or not; the day may be over."""
    contract = Contract.from_dict(document(versions="1.x", until="2001-01-01"))

    accepted = contract.accept({"a": "x"}, version=version)
    current = contract.accept({"b": "x"})

    assert accepted.arguments == {"b": "x"}
    assert accepted.warnings == (
        f"version {version or '>=1.0.0,<2.0.0'} is deprecated: its calls are taken "
        "until 2001-01-01; send the arguments of the current version",
    )
    assert current.warnings == ()


@pytest.mark.parametrize(
    ("deprecated", "fault"),
    [
        ({"versions": "banana"}, "'banana' is not a version range"),
        ({"until": "2027-01-01"}, "'versions' is a required property"),
        ({"versions": "1.x", "until": "2027-13-01"}, "month must be in 1..12"),
        ({"versions": "1.x", "until": "soon"}, "does not match"),
    ],
)
def test_a_range_or_a_day_that_cannot_be_read_is_refused(
    deprecated: dict[str, str], fault: str
) -> None:
    """With its place."""
    with pytest.raises(InvalidSkillError, match="/deprecated") as caught:
        Contract.from_dict(document(**deprecated))

    assert fault in str(caught.value)
