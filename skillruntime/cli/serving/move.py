"""Move the data of a server to PostgreSQL."""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["move_to_database"]


def move_to_database(options: SimpleNamespace) -> str:
    """Move the data of a server, and return what was moved."""
    from skillruntime.server import move_data

    moved = move_data(
        options.data,
        options.move_to,
        wait=options.wait,
        capacity=options.capacity,
        kept_for=options.keep * 3600,
        per_skill=options.per_skill,
        per_caller=options.per_caller,
    )
    if moved.was_complete:
        return f"everything was moved to {moved.place} before"
    lines = [
        f"moved to {moved.place}: {moved.keys} keys, {moved.ended} results, "
        f"{moved.unfinished} unfinished executions"
    ]
    if moved.interrupted:
        lines.append(
            f"{moved.interrupted} executions had begun and must not run twice; they "
            "ended: see skillruntime remote list --interrupted --all"
        )
    return "\n".join(lines)
