"""Decide who can reach a server, and the access of skills that do not state their own.

The law: if a server knows its callers, it refuses a call without credentials, unless
the host allows it by ``public``, or trusts a skill that declares itself public.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address, ip_network

from skillruntime.errors import SkillRuntimeError
from skillruntime.remote.descriptor import AccessPolicy
from skillruntime.remote.hosts import ascii_host

__all__ = ["LOCAL_NAMES", "default_access", "is_this_machine", "outer_address"]

LOCAL_NAMES = frozenset({"127.0.0.1", "::1", "localhost"})
"""The names by which programs on this machine usually reach the server."""


def is_this_machine(host: str) -> bool:
    """Return whether *host*, an address or a name, is always this machine.

    >>> [is_this_machine(host) for host in ("127.0.0.2", "::1", "app.localhost")]
    [True, True, True]
    >>> [is_this_machine(host) for host in ("0.0.0.0", "::", "", "skills.example")]
    [False, False, False, False]
    """
    name = host.rstrip(".").lower()
    # RFC 6761, 6.3: names below `localhost.` are loopback addresses.
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name).is_loopback
    except ValueError:
        return False


def outer_address(
    host: str,
    *,
    base_url: str | None,
    trusted_proxies: Iterable[str],
    allowed_hosts: Iterable[str],
) -> str | None:
    """Return the first address by which other machines reach the server; None if only
    this machine does.

    Other machines can also reach a loopback address through a proxy. A server behind a
    proxy is recognized by the URL that callers use, by the proxy that it trusts, or by
    the Host names that it answers.
    """
    if not is_this_machine(host):
        return host or "this machine"
    if base_url is not None and not is_this_machine(ascii_host(base_url)):
        return base_url
    for proxy in trusted_proxies:
        if not ip_network(proxy, strict=False).is_loopback:
            return f"the proxy {proxy}"
    for name in allowed_hosts:
        if not is_this_machine(name):
            return name
    return None


def default_access(
    stated: AccessPolicy | None, *, knows_callers: bool, public: bool
) -> AccessPolicy:
    """Return the access of the skills that do not state their own.

    *stated* is the host's choice, or None. *public* is the host's decision that
    everyone may call without credentials.

    Raises:
        SkillRuntimeError: public access is stated although callers have keys.
    """
    if stated is None:
        if knows_callers and not public:
            return AccessPolicy.RESTRICTED
        return AccessPolicy.PUBLIC
    if stated is AccessPolicy.PUBLIC and knows_callers and not public:
        raise SkillRuntimeError(
            "With --access public everyone calls the skills without a key, although "
            "this server knows its callers: leave out --access public, and every call "
            "needs credentials, or serve everyone with --public"
        )
    return stated
