"""Which credentials go to which skill: a key for API-key skills goes to no other."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.remote import (
    ApiKey,
    RemoteClient,
    RemoteError,
    SkillDescriptor,
    Token,
    from_environment,
)
from tests.remote.invoking import descriptor
from tests.remote.parts import AuthConfig, AuthType, WireRequest, WireResponse

pytestmark = pytest.mark.anyio

KEY = "sk-1"
API_KEY = "SKILLRUNTIME_API_KEY_API_EXAMPLE_COM"
OTHER_KINDS: list[dict[str, Any]] = [
    {"type": "oauth2", "oauth2": {"token_url": "https://api.example.com/token"}},
    {"type": "custom"},
]
EACH_KIND = pytest.mark.parametrize("auth", OTHER_KINDS, ids=["oauth2", "custom"])


def skill(auth: dict[str, Any]) -> SkillDescriptor:
    """Return a skill that asks for credentials of this kind."""
    return SkillDescriptor.from_dict({**descriptor().to_dict(), "auth": auth})


@EACH_KIND
async def test_a_key_of_the_environment_goes_to_api_key_skills_alone(
    auth: dict[str, Any],
) -> None:
    """A skill that asks for a token or for something of its own is not given the host's
    API key instead.
    """
    environment = {API_KEY: KEY}
    described = skill(auth)

    api_key = await from_environment(skill({"type": "api_key"}), environment)(
        AuthConfig(AuthType.API_KEY), False
    )
    try:
        other = (
            await from_environment(described, environment)(described.auth, False)
        ).headers
    except RemoteError as error:
        other = {}
        assert "SKILLRUNTIME_CLIENT_ID_API_EXAMPLE_COM" in str(error)

    assert api_key.headers == {"x-api-key": KEY}
    assert other == {}


@EACH_KIND
async def test_a_key_in_code_goes_to_api_key_skills_alone(auth: dict[str, Any]) -> None:
    """The call is refused before anything is sent."""
    sent: list[WireRequest] = []

    async def transport(request: WireRequest) -> WireResponse:
        sent.append(request)
        return WireResponse(401)

    with pytest.raises(RemoteError, match=f"asks for {auth['type']} credentials"):
        await RemoteClient(skill(auth), ApiKey(KEY), transport).invoke({"text": "hi"})

    assert not sent


async def test_a_token_of_the_user_is_a_bearer_token() -> None:
    """RFC 6750, 2.1: it goes into ``Authorization`` alone."""
    described = skill(OTHER_KINDS[0])

    shown = await from_environment(
        described, {"SKILLRUNTIME_TOKEN_API_EXAMPLE_COM": "t0"}
    )(described.auth, False)

    assert shown.headers == {"authorization": "Bearer t0"}
    assert shown == await Token("t0")(described.auth, False)
