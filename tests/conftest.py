"""What every test shares: one asynchronous backend unless a test asks for more, and quiet, repeatable properties."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("repeatable")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
