"""Decide which skills a caller may see and call, and what its scopes allow.

This needs no I/O, because the caller is already identified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skillruntime.remote.descriptor import AccessPolicy, AuthType
from skillruntime.remote.http_message import WireRequest
from skillruntime.remote.wire_errors import ErrorDocument, WireCode
from skillruntime.server.callers.access import INVOKE, Principal, owner_of
from skillruntime.server.callers.rate_limits import counted_address
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

    ``was_bad`` means that its credentials are not valid. Such a request is treated as
    anonymous if everyone may see the answer, and refused otherwise.
    """

    request: WireRequest
    parts: tuple[str, ...]
    principal: Principal | None = None
    was_bad: bool = False
    skill_id: str = ""
    trace_id: str = ""

    @property
    def owner(self) -> str:
        """The caller's name as the owner of executions."""
        return owner_of(self.principal)

    @property
    def rated(self) -> str:
        """The caller for whom rates are counted; an anonymous caller is counted by its
        address.
        """
        if self.principal is None:
            return f"at {counted_address(self.request.peer)}"
        return self.principal.id

    @property
    def knows_cancelled(self) -> bool:
        """Whether the client states that it knows the status ``cancelled``; other
        clients get ``failed``.
        """
        names = self.request.headers.get("skill-extensions", "").split(",")
        return "cancelled" in [name.strip() for name in names]


def find_all(call: Call, skills: Mapping[str, PublishedSkill]) -> list[PublishedSkill]:
    """Return the skills that this caller may see."""
    # Every caller with a key sees all private skills; the key decides which of them it
    # may call (4.3).
    if call.principal is not None:
        return list(skills.values())
    return [
        skill
        for skill in skills.values()
        if skill.descriptor.access is not AccessPolicy.PRIVATE
    ]


def find_skill(call: Call, skills: Mapping[str, PublishedSkill]) -> PublishedSkill:
    """Return the skill of the call's path, if this caller may see it.

    The answers for a private skill and for a skill that does not exist are equal, byte
    for byte.

    Raises:
        RefusedError: the skill does not exist for this caller.
    """
    absent = refuse(WireCode.SKILL_NOT_FOUND, "The skill does not exist")
    skill = skills.get(call.parts[0])
    if skill is None:
        raise absent
    # 403 would reveal that the skill exists, and section 7 of the invocation protocol
    # permits hiding a private skill.
    if skill.descriptor.access is AccessPolicy.PRIVATE and call.principal is None:
        raise absent
    call.skill_id = skill.id
    return skill


def find_callable(call: Call, skills: Mapping[str, PublishedSkill]) -> PublishedSkill:
    """Return the skill of the call's path, if this caller may call it.

    Raises:
        RefusedError: the skill does not exist, or the caller must not call it.
    """
    skill = find_skill(call, skills)
    descriptor = skill.descriptor
    if call.was_bad:
        raise refuse_login(descriptor)
    if call.principal is None:
        # Skill descriptor, section 4.4: the credentials that a descriptor asks for are
        # required, even if everyone may see the skill.
        if (
            descriptor.access is not AccessPolicy.PUBLIC
            or descriptor.auth.type is not AuthType.NONE
        ):
            raise refuse_login(descriptor)
        return skill
    check_scope(call.principal.may_invoke, INVOKE)
    if not call.principal.may_call(skill.id):
        raise refuse(
            WireCode.PERMISSION_DENIED, "These credentials do not allow this skill"
        )
    return skill


def check_scope(is_allowed: bool, scope: str) -> None:
    """Refuse a caller whose token does not have *scope* (RFC 6750, 3.1: 403 and
    insufficient_scope).

    Raises:
        RefusedError: the token does not have the scope.
    """
    if not is_allowed:
        challenge = f'Bearer error="insufficient_scope", scope="{scope}"'
        document = ErrorDocument(
            WireCode.PERMISSION_DENIED, f"The credentials do not have the scope {scope}"
        )
        raise RefusedError(document, {"www-authenticate": challenge})


def check_operator(call: Call, what: str) -> None:
    """Refuse a caller who is not an operator; *what* names the action in the message.

    Raises:
        RefusedError: the caller is not an operator.
    """
    if call.principal is None:
        raise refuse_login(None)
    if not call.principal.is_operator:
        raise refuse(WireCode.PERMISSION_DENIED, f"Only an operator may {what}")
