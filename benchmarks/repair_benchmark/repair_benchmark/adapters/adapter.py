"""What an adapter in Python needs: `serve` hands it one case after the other, and
writes what it answers.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any


def text_of(payload: Any) -> str:
    """Return the payload as the text that a model wrote: an object is written as
    JSON.
    """
    return (
        payload if isinstance(payload, str) else json.dumps(payload, ensure_ascii=False)
    )


def object_of(payload: Any) -> Any:
    """Return the payload as an agent hands it on: a text is read as JSON, and one that
    is not JSON is refused.
    """
    return json.loads(payload) if isinstance(payload, str) else payload


def serve(answer: Callable[..., Any]) -> None:
    """Read one case a line, and write one line each: the arguments that *answer*
    returns, or that it refused, and the microseconds that it took.

    *answer* is called with ``schema``, ``payload``, ``tool`` and ``finish_reason``.
    Whatever it raises is a refusal.
    """
    # What an engine prints belongs to the log.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        case = json.loads(line)
        start = time.perf_counter_ns()
        try:
            found = {"arguments": answer(**case)}
        except Exception as error:
            found = {"refused": f"{type(error).__name__}: {error}"[:300]}
        found["microseconds"] = (time.perf_counter_ns() - start) / 1000
        answers.write(json.dumps(found, default=str) + "\n")
        answers.flush()
