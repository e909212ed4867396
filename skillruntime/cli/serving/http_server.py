"""Serve skills by the invocation protocol, over HTTP."""

from __future__ import annotations

import logging
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING

import click

from skillruntime.cli.inputs.roots import open_catalog
from skillruntime.cli.serving.authenticators import open_authenticator
from skillruntime.cli.serving.keys import warn_of_other_keys
from skillruntime.cli.serving.observers import open_observers
from skillruntime.server.data_directory import key_file

if TYPE_CHECKING:
    from skillruntime.server import Hosting, PublishedSkill

__all__ = ["serve_over_http"]


def serve_over_http(
    options: SimpleNamespace,
    names: tuple[str, ...],
    directories: tuple[str, ...],
    trust: bool,
) -> None:
    """Serve until the process is stopped."""
    import anyio

    from skillruntime.runtime import SkillRuntime
    from skillruntime.server import host_skills

    if options.log:
        _log_to_stderr()
    catalog = open_catalog(directories, trust=trust)
    runtime = SkillRuntime(
        catalog, workspace=options.workspace, on_call=open_observers(options, catalog)
    )
    warn_of_other_keys(options)
    anyio.run(
        partial(host_skills, runtime, _hosting(options, names), on_ready=_print_ready)
    )


def _hosting(options: SimpleNamespace, names: tuple[str, ...]) -> Hosting:
    from skillruntime.remote import AccessPolicy
    from skillruntime.server import Hosting, Limits

    # With --memory the keys are still on disk: callers keep theirs when the process
    # starts again.
    data = None if options.memory else options.data
    keys = None
    if options.database is None:
        keys = key_file(options.data)
    return Hosting(
        options.host,
        options.port,
        options.base_url,
        data,
        keys,
        None if options.access is None else AccessPolicy(options.access),
        names,
        capacity=options.capacity,
        kept_for=options.keep * 3600,
        limits=Limits(
            invocations_per_minute=options.rate,
            timeout_seconds=options.timeout,
            output_bytes=options.most_output,
        ),
        database=options.database,
        waits_for_lock=options.wait,
        drain_seconds=options.drain,
        lease=options.lease,
        per_skill=options.per_skill,
        per_caller=options.per_caller,
        trusted_proxies=tuple(map(str, options.trusted_proxy)),
        allowed_hosts=options.allow_host,
        pages=not options.no_pages,
        webhooks=options.webhooks,
        webhook_allow=tuple(map(str, options.webhook_allow)),
        authenticate=open_authenticator(options),
        policy=options.policy,
        public=options.public,
        strict=options.strict,
        connections=options.connections,
        connections_per_address=options.connections_per_address,
    )


def _print_ready(base_url: str, served: list[PublishedSkill], left: int) -> None:
    for skill in served:
        click.echo(
            f"  {skill.id} {skill.descriptor.version} ({skill.descriptor.access})",
            err=True,
        )
    if left:
        click.echo(
            f"continuing {left} execution{'s' * (left != 1)} of an earlier start",
            err=True,
        )
    click.echo(
        f"serving {len(served)} skill{'s' * (len(served) != 1)} at {base_url}", err=True
    )


def _log_to_stderr() -> None:
    # This logger alone: the records of other libraries are not lines of JSON.
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    logger = logging.getLogger("skillruntime.access")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
