"""``skillruntime remote``: call remote skills, describe local skills, and manage the
executions of a server.
"""

from __future__ import annotations

import click

from skillruntime.cli.remoting import executions
from skillruntime.cli.remoting.describe import describe
from skillruntime.cli.remoting.invoke import invoke

__all__ = ["command"]


class _Group(click.Group):
    """The group, which knows that people type ``call``: the nearest name by letters is
    ``cancel``.
    """

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[:1] == ["call"]:
            ctx.fail("There is no command 'call'. Did you mean 'invoke'?")
        return super().resolve_command(ctx, args)


@click.group("remote", cls=_Group)
def command() -> None:
    """Call remote skills, describe local ones, and list and end the executions of a
    server.

    The API key is taken from the variable named for the server's host, such as
    SKILLRUNTIME_API_KEY_API_EXAMPLE_COM, or SKILLRUNTIME_API_KEY_127_0_0_1_PORT_8400.
    """


for _command in (
    invoke,
    describe,
    executions.list_,
    executions.show,
    executions.cancel,
    executions.complete,
    executions.release,
    executions.leave,
):
    command.add_command(_command)
