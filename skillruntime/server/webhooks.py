"""Notify a caller of an execution's end (an extension), as Standard Webhooks specifies:
messages are signed, repeated, and sent only to allowed addresses.

A caller's secret is derived from the server's secret and not stored. Only authenticated
callers may name an address, and it must be public.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import logging
import time
from collections.abc import Sequence

import anyio

from skillruntime.remote.http_message import Transport, UnreachableError, WireRequest
from skillruntime.remote.http_transport import HttpTransport
from skillruntime.remote.protocol import Execution
from skillruntime.remote.ssrf_guard import AddressGuard
from skillruntime.server.executions.ticket import Ticket

__all__ = ["Webhooks", "sign"]

_log = logging.getLogger("skillruntime.remote")


def sign(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return the ``webhook-signature`` of a message (Standard Webhooks 1.0,
    "Symmetric").

    >>> secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    >>> message_id = "msg_p5jXN8AQM9LWM0D4loKWxJek"
    >>> sign(secret, message_id, 1614265330, b'{"test": 2432232314}')
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{message_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()


class Webhooks:
    """Sends webhooks; *secret* is the server's own. *pauses* are the seconds between
    attempts.
    """

    def __init__(
        self,
        secret: bytes,
        *,
        guard: AddressGuard | None = None,
        transport: Transport | None = None,
        pauses: Sequence[float] = (1, 5, 30, 120),
    ) -> None:
        self._secret = secret
        self._guard = guard or AddressGuard()
        self._transport = transport
        self._pauses = tuple(pauses)

    def secret_of(self, owner: str) -> str:
        """Return the secret that signs messages to *owner*."""
        # The secret is derived, so that every server signs with the same key, and
        # callers' secrets cannot be stolen from the database.
        key = hmac.digest(
            self._secret,
            b"webhook " + owner.encode("utf-8", "surrogatepass"),
            hashlib.sha256,
        )
        return "whsec_" + base64.b64encode(key).decode()

    async def allows(self, url: str) -> bool:
        """Return whether a message may be sent to *url*: it is public, or the guard
        allows it.
        """
        try:
            await self._guard.address_of(url)
        except UnreachableError:
            # The address is private or does not resolve. This is reported when the
            # execution is submitted, not when it ends.
            return False
        return True

    async def notify(self, ticket: Ticket, execution: Execution) -> bool:
        """Send the ended execution to the ticket's webhook until it answers 2xx or the
        attempts are used up.

        Return whether it was accepted.
        """
        assert ticket.webhook is not None
        document = {
            "type": f"execution.{execution.status.value}",
            "timestamp": execution.timestamps.updated_at,
            "data": execution.to_dict(),
        }
        text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
        body = text.encode("utf-8", "replace")
        # A message is sent at least once, and again after a crash. Its id is the same
        # each time, so the receiver recognizes a repetition.
        message_id = f"msg_{execution.execution_id}"
        secret = self.secret_of(ticket.owner)
        for pause in (*self._pauses, None):
            timestamp = int(time.time())
            headers = {
                "content-type": "application/json",
                "user-agent": "skillruntime",
                "webhook-id": message_id,
                "webhook-timestamp": str(timestamp),
                "webhook-signature": sign(secret, message_id, timestamp, body),
            }
            request = WireRequest("POST", ticket.webhook, headers, body)
            if _is_accepted(await self._send(request)):
                return True
            if pause is not None:
                await anyio.sleep(pause)
        _log.warning(
            "the webhook of %s did not accept the message", execution.execution_id
        )
        return False

    async def _send(self, request: WireRequest) -> int | None:
        """Return the status of the receiver's answer; None if it does not answer."""
        try:
            if self._transport is not None:
                response = await self._transport(request)
            else:
                async with HttpTransport(
                    self._guard, timeout=20, max_response=64 * 1024
                ) as transport:
                    response = await transport(request)
        except UnreachableError:
            return None
        return response.status


def _is_accepted(status: int | None) -> bool:
    """Return whether this status ends the attempts to send the message."""
    if status is None:
        return False
    # Standard Webhooks: 410 means that the receiver does not want further messages.
    return 200 <= status < 300 or status == 410
