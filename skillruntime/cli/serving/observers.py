"""Open what observes the calls of a served runtime."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from skillruntime.catalog import SkillCatalog
    from skillruntime.runtime.call_record import Observer

__all__ = ["open_observers"]


def open_observers(
    options: SimpleNamespace, catalog: SkillCatalog
) -> tuple[Observer, ...]:
    """Return the observers of the runtime, which write spans with ``--otel``."""
    if not options.otel:
        return ()
    from skillruntime.adapters.telemetry import send_spans, spans

    try:
        send_spans()
    except ModuleNotFoundError as error:
        raise click.UsageError(f"--otel: {error}") from None
    return (spans(catalog=catalog),)
