"""Which declared dependencies are installed: `skillruntime/runtime/scripts/readiness.py`."""

from __future__ import annotations

from skillruntime.runtime.scripts.readiness import missing_packages


def test_a_version_that_does_not_fit_is_missing_too() -> None:
    """An installed package of the wrong version does not satisfy a requirement."""
    assert missing_packages(
        ("packaging>=99999", "Packaging", "not a requirement!")
    ) == ["packaging>=99999", "not a requirement!"]
