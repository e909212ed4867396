"""agent-airlock: a decorator that checks a function's keyword arguments; it reads no
text.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agent_airlock import Airlock


def answer(tool: Callable[..., Any], text: str) -> str | None:
    """Return what the model reads; None where the library never sees such a text."""
    try:
        arguments = json.loads(text)
    except ValueError:
        return None
    return str(Airlock()(tool)(**arguments))
