"""What a caller may do: which skills it sees and calls, and what its scopes allow. No
I/O: who it is is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillruntime.remote.descriptor import AccessPolicy, AuthType
from skillruntime.remote.http_message import WireRequest
from skillruntime.remote.wire_errors import ErrorDocument, WireCode
from skillruntime.server.callers.access import ANONYMOUS, INVOKE, Principal
from skillruntime.server.http.responses import RefusedError, refuse, refuse_login
from skillruntime.server.published_skill import PublishedSkill

__all__ = [
    "Call",
    "check_operator",
    "check_scope",
    "find_all",
    "find_callable",
    "find_skill",
]


@dataclass(slots=True)
class Call:
    """One request on its way through the service.

    ``was_bad``: it has credentials that are not valid. It is then answered as an
    anonymous one where everyone may see the answer, and refused elsewhere.
    """

    request: WireRequest
    parts: tuple[str, ...]
    principal: Principal | None = None
    was_bad: bool = False
    skill_id: str = ""
    trace_id: str = ""

    @property
    def owner(self) -> str:
        """The caller, as executions name their owner."""
        return self.principal.id if self.principal is not None else ANONYMOUS

    @property
    def rated(self) -> str:
        """The caller for whom rates are counted: an anonymous one has only its
        address.
        """
        return (
            self.principal.id
            if self.principal is not None
            else f"at {self.request.peer}"
        )

    @property
    def knows_cancelled(self) -> bool:
        """Whether the client states that it knows the status ``cancelled``; others get
        ``failed``.
        """
        stated = self.request.headers.get("skill-extensions", "").split(",")
        return "cancelled" in [each.strip() for each in stated]


def find_all(call: Call, skills: Mapping[str, PublishedSkill]) -> list[PublishedSkill]:
    """Return the skills that this caller may see."""
    # Every caller with a key sees private skills; which of them it may call, its key
    # says (4.3).
    known = call.principal is not None
    return [
        each
        for each in skills.values()
        if known or each.descriptor.access is not AccessPolicy.PRIVATE
    ]


def find_skill(call: Call, skills: Mapping[str, PublishedSkill]) -> PublishedSkill:
    """Return the skill of the call's path, if this caller may see it: a private one is
    absent, to the last byte.

    Raises:
        RefusedError: there is none for this caller.
    """
    found = skills.get(call.parts[0])
    # 403 would say that it exists: section 7 lets a private skill be absent.
    is_hidden = (
        found is not None
        and found.descriptor.access is AccessPolicy.PRIVATE
        and call.principal is None
    )
    if found is None or is_hidden:
        raise refuse(WireCode.SKILL_NOT_FOUND, "The skill does not exist")
    call.skill_id = found.id
    return found


def find_callable(call: Call, skills: Mapping[str, PublishedSkill]) -> PublishedSkill:
    """Return the skill of the call's path, if this caller may call it.

    Raises:
        RefusedError: it does not exist, or the caller must not call it.
    """
    found = find_skill(call, skills)
    descriptor = found.descriptor
    # 4.4: what a descriptor asks for is asked for, also of callers of a skill that
    # everyone may see.
    needs_login = (
        descriptor.access is not AccessPolicy.PUBLIC
        or descriptor.auth.type is not AuthType.NONE
    )
    if call.was_bad or (call.principal is None and needs_login):
        raise refuse_login(descriptor)
    check_scope(call.principal is None or call.principal.may_invoke, INVOKE)
    if call.principal is not None and not call.principal.may_call(found.id):
        raise refuse(
            WireCode.PERMISSION_DENIED, "These credentials do not allow this skill"
        )
    return found


def check_scope(is_allowed: bool, scope: str) -> None:
    """Refuse a caller whose token does not have *scope* (RFC 6750, 3.1: 403 and
    insufficient_scope).

    Raises:
        RefusedError: it does not.
    """
    if not is_allowed:
        challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
        document = ErrorDocument(
            WireCode.PERMISSION_DENIED, f"The credentials do not have the scope {scope}"
        )
        raise RefusedError(document, {"www-authenticate": challenge})


def check_operator(call: Call, what: str) -> None:
    """Refuse a caller who is not an operator; *what* is what only an operator may do.

    Raises:
        RefusedError: it is not.
    """
    if call.principal is None:
        raise refuse_login(None)
    if not call.principal.is_operator:
        raise refuse(WireCode.PERMISSION_DENIED, f"Only an operator may {what}")
