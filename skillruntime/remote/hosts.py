"""Normalize the hosts and path segments of URLs, so that they are compared, resolved
and sent in one form.
"""

from __future__ import annotations

from urllib.parse import quote, urlsplit

__all__ = ["ascii_host", "escape_segment", "origin_of"]


def ascii_host(url: str) -> str:
    """Return the host of *url* in lower case and ASCII (IDNA); empty if it has none.

    A name is compared as it is resolved: ``apı.test``, whose dotless i becomes an I in
    upper case, is not ``api.test``.

    >>> ascii_host("https://API.test./x"), ascii_host("https://apı.test/")
    ('api.test', 'xn--ap-ipa.test')

    Raises:
        ValueError: the URL is malformed, or its host is not a name that can be
            resolved.
    """
    host = (urlsplit(url).hostname or "").rstrip(".")
    if host.isascii():
        return host
    return host.encode("idna").decode("ascii").lower()


def origin_of(url: str) -> tuple[str, str, int]:
    """Return the origin of *url* (scheme, host and port): only this origin may receive
    its credentials.

    Raises:
        ValueError: the URL is malformed.
    """
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return parts.scheme, ascii_host(url), port


def escape_segment(text: str) -> str:
    """Return *text* escaped as one path segment, so that it cannot name another path.

    >>> [escape_segment(text) for text in ("a/b", "..", "技", "urn:x:y")]
    ['a%2Fb', '%2E%2E', '%E6%8A%80', 'urn%3Ax%3Ay']
    """
    # RFC 3986, 5.2.4: unescaped, they would be removed from the path.
    if text in (".", ".."):
        return text.replace(".", "%2E")
    # Half of a surrogate pair is a legal JSON string.
    return quote(text, safe="", errors="surrogatepass")
