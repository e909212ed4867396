"""Make and revoke the API keys of a server. A running server reads them again, so a
change needs neither a lock nor a restart.
"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import click

from skillruntime.server.data_directory import DATA_DIRECTORY, key_file

__all__ = ["make_key", "revoke_keys_of", "warn_of_other_keys"]


def make_key(options: SimpleNamespace, names: tuple[str, ...]) -> str:
    """Return a new key for the caller ``--new-key``, for the skills *names*."""
    from skillruntime.server import add_key

    place = _place_of_keys(options)
    is_first = isinstance(place, Path) and not place.exists()
    try:
        key = add_key(
            place,
            options.new_key,
            skills=names,
            operator=options.operator,
            scopes=options.scope,
        )
    except ValueError as error:
        raise click.UsageError(f"--new-key: {error}") from None
    if is_first:
        click.echo(
            "A server that is already running without keys needs a restart to "
            "ask for them.",
            err=True,
        )
    return key


def revoke_keys_of(options: SimpleNamespace) -> str:
    """Revoke the keys of the caller ``--revoke-key``; return how many they were."""
    from skillruntime.server import revoke_keys

    number = revoke_keys(_place_of_keys(options), options.revoke_key)
    if number == 0:
        raise click.ClickException(
            f"{options.revoke_key!r} has no key: nothing was revoked"
        )
    return f"revoked {number} key{'s' * (number != 1)} of {options.revoke_key}"


def _place_of_keys(options: SimpleNamespace) -> Path | str:
    """Return the key file, or the URL of the database that holds the keys."""
    if options.database is not None:
        return str(options.database)
    return key_file(options.data)


def warn_of_other_keys(options: SimpleNamespace) -> None:
    """Warn of a server that has no keys although the default directory has some: they
    were probably made without this server's ``--data``.
    """
    if options.database is not None or key_file(options.data).exists():
        return
    other = key_file(DATA_DIRECTORY)
    if other.exists():
        click.echo(
            f"warning: this server does not read the keys in {other}; make its "
            f"keys with --data {options.data}",
            err=True,
        )
