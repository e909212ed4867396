"""Find remote skills by the typed text: the URL of a descriptor, or the path of a
descriptor.json.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from skillruntime.errors import (
    InvalidSkillError,
    SkillNotFoundError,
    ToolNotAvailableError,
)

if TYPE_CHECKING:
    from skillruntime.remote import SkillDescriptor

__all__ = ["address_of", "has_host", "is_remote", "read_descriptor", "unreachable"]


_EXAMPLE = "Give the address of a skill's descriptor, such as https://HOST/skills/NAME"


def is_remote(name: str) -> bool:
    """Return whether *name* is a descriptor's URL or file rather than the name of a
    local skill.

    >>> is_remote("https://example.com/skills/translate")
    True
    >>> is_remote("pdf-processing/extract")
    False
    """
    # A skill's name holds no dot and no colon (Agent Skills format), so neither form
    # can be one.
    return name.startswith(("http://", "https://")) or name.endswith(".json")


def read_descriptor(source: str) -> SkillDescriptor:
    """Return the descriptor at *source*, a URL or a file.

    Raises:
        ToolNotAvailableError: the server cannot be reached (recoverable).
        InvalidSkillError: *source* does not hold a descriptor.
        SkillNotFoundError: the server has no descriptor there.
        RemoteError: the server refuses it.
        click.UsageError: *source* begins like a URL, but does not name a host.
    """
    from skillruntime.remote import SkillDescriptor

    if source.startswith(("http://", "https://")):
        # "https://..." as an example shows it: trying again later would not help, so it
        # must not exit with 3.
        if not has_host(source):
            raise click.UsageError(f"That URL names no host. {_EXAMPLE}.")
        return _fetched(source)
    try:
        document: Any = json.loads(Path(source).read_text("utf-8"))
    except OSError as error:
        raise InvalidSkillError(
            f"{source!r} cannot be read: {error.strerror}"
        ) from None
    except ValueError as error:
        raise InvalidSkillError(f"{source!r} is not valid JSON: {error}") from None
    return SkillDescriptor.from_dict(document)


def address_of(url: str) -> str:
    """Return the part of *url* that is safe to print: without user, password and query.

    >>> address_of("https://user:secret@example.com:8400/skills/translate?key=1")
    'https://example.com:8400/skills/translate'
    """
    parts = urlsplit(url)
    if not parts.scheme:  # not a URL: shown as typed
        return parts.path.rpartition("@")[2]
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def has_host(url: str) -> bool:
    """Return whether *url* names a host.

    >>> has_host("https://example.com/mcp")
    True
    >>> has_host("https://..."), has_host("http://[::1")
    (False, False)
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return all(host.removesuffix(".").split("."))


def _fetched(url: str) -> SkillDescriptor:
    import anyio

    from skillruntime.remote import (
        AddressGuard,
        ApiKey,
        RemoteError,
        WireCode,
        fetch_descriptor,
        variable_for,
    )

    # A private skill is shown only to callers who may call it: the key for its host is
    # sent along.
    key = os.environ.get(variable_for(url))

    async def fetch() -> SkillDescriptor:
        # The person who types an address may mean one inside their own network.
        guard = AddressGuard(allow_all=True)
        credentials = ApiKey(key) if key else None
        return await fetch_descriptor(url, credentials=credentials, guard=guard)

    try:
        return anyio.run(fetch)
    except InvalidSkillError as error:
        raise InvalidSkillError(
            f"{address_of(url)}: {error}", suggested_action=_EXAMPLE
        ) from None
    except RemoteError as error:
        if error.document.code == WireCode.ENDPOINT_UNREACHABLE:
            raise unreachable(url, error) from None
        if error.document.code in (WireCode.NOT_FOUND, WireCode.SKILL_NOT_FOUND):
            raise SkillNotFoundError(
                f"{address_of(url)}: {error}", suggested_action=_EXAMPLE
            ) from None
        raise


def unreachable(url: str, error: Exception) -> ToolNotAvailableError:
    """Return the error for a server that did not answer; it names the address, and
    exits with 3.
    """
    # The transport knows the reason; only this function knows the typed address.
    reason = str(error).rstrip(".")
    return ToolNotAvailableError(
        f"{address_of(url)}: {reason}",
        suggested_action="Check the address and that the server is running, then try "
        "again",
        recoverable=True,
    )
