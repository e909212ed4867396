"""Hand over a dead server's work with a private function of DBOS that no public
function can replace. `docs/dbos-request.md` asks DBOS to make it public.
"""

from __future__ import annotations

from dbos import DBOS

__all__ = ["hand_over"]


def hand_over(executor: str) -> None:
    """Queue again the workflows that the server *executor* has begun and not ended; a
    second call has no effect. This is called in a thread.
    """
    DBOS._recover_pending_workflows([executor])
