"""The command line: data on stdout, messages on stderr; exit 0 ok, 1 failed, 2 usage, 3
worth trying again.
"""

from __future__ import annotations

import atexit
import gc
import sys

TYPE_CHECKING = False  # importing `typing` takes 8 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, NoReturn

    from skillruntime.cli.commands import group as group

__all__ = ["main"]

# New objects before Python searches for garbage; the import of a command makes fewer.
_OBJECTS = 50_000


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    given = sys.argv[1:] if arguments is None else arguments
    words = [*given]  # not list(): the command of that name hides it
    # Without stdout another file may have its number, and would get the messages.
    if words[:1] == ["mcp-proxy"] and sys.stdout is not None:
        # A client starts every one of its servers through this one, and waits: click
        # alone takes 20 ms to import.
        from skillruntime.adapters.mcp_proxy.quick_start import run_quickly

        status = run_quickly(words[1:])
        if status is not None:
            sys.exit(status)
    # Otherwise Python searches for garbage 80 times during the imports, and twice at
    # the end; each of the two costs a tenth of a short command.
    gc.set_threshold(_OBJECTS)
    atexit.register(gc.freeze)
    if words[:1] == ["doctor"] and sys.stdout is not None:
        # If click is missing, this command says so.
        from skillruntime.cli.doctor_report import answer_plainly

        if answer_plainly(words[1:]):
            sys.exit()
    try:
        from skillruntime.cli.commands import run
    except ModuleNotFoundError as error:
        from skillruntime.extras import missing_extra

        sys.exit(
            "The command line needs a package that is not installed. "
            f"{missing_extra(error)}"
        )
    run(arguments)


def __getattr__(name: str) -> Any:
    if name != "group":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from skillruntime.cli.commands import group

    return group
