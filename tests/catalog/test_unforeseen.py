"""`skillruntime/catalog/unforeseen.py`: a fault of this library is logged."""

from __future__ import annotations

import pytest

from skillruntime.catalog.unforeseen import refusing_unforeseen
from skillruntime.errors import InvalidSkillError


def test_the_log_has_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The error that a caller sees names only the skill and the kind of exception."""
    with (
        pytest.raises(InvalidSkillError, match=r"'a/SKILL\.md'.*\(KeyError\)"),
        refusing_unforeseen("a/SKILL.md"),
    ):
        raise KeyError("deep inside")

    [record] = caplog.records
    assert record.exc_info is not None
    assert "a/SKILL.md could not be read" in caplog.text
    assert "deep inside" in caplog.text


def test_a_foreseen_error_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It passes unchanged."""
    error = InvalidSkillError("The name is missing")
    with pytest.raises(InvalidSkillError) as raised, refusing_unforeseen("a/SKILL.md"):
        raise error

    assert raised.value is error
    assert caplog.records == []
