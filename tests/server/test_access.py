"""Who calls: keys known by their hashes, tokens by their issuer's keys, and OAuth from
the client's side.
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from skillruntime.errors import InvalidSkillError
from skillruntime.remote import (
    AuthorizationCode,
    ClientCredentials,
    CustomCredentials,
    RemoteError,
)
from skillruntime.server import BadCredentialsError, KeyRing, Principal, any_of
from skillruntime.server.callers.access import hash_key, new_key
from skillruntime.server.callers.rate_limits import RateLimiter
from skillruntime.server.http.responses import RefusedError
from tests import needs
from tests.remote.parts import (
    AuthConfig,
    AuthType,
    OAuth2Config,
    WireRequest,
    WireResponse,
)

joserfc = needs.package("joserfc")
pytestmark = pytest.mark.anyio
ISSUER, AUDIENCE = "https://issuer.example", "skills"
CONFIG = OAuth2Config(
    "https://issuer.example/token",
    "https://issuer.example/authorize",
    {"skill:invoke": "Invoke"},
)
OAUTH = AuthConfig(AuthType.OAUTH2, oauth2=CONFIG)


def bearer(token: str) -> WireRequest:
    """Return a request with a bearer token."""
    return WireRequest("GET", "http://x/", {"authorization": f"Bearer {token}"})


def test_a_key_file_holds_hashes_alone() -> None:
    """What lies on the disk opens nothing."""
    key = new_key()
    text = json.dumps(
        {
            "keys": [
                {
                    "id": "ann",
                    "sha256": hash_key(key),
                    "skills": ["echo"],
                    "operator": True,
                }
            ]
        }
    )

    ring = KeyRing.from_text(text)
    principal = anyio.run(
        ring, WireRequest("GET", "http://x/", {"x-api-key": key}), None
    )

    assert key not in text
    assert principal == Principal("ann", frozenset({"echo"}), True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"keys": [{"id": "anonymous", "sha256": "00"}]}',
        "[]",
        "{}",
        '{"keys": [{}]}',
        '{"keys": [{"id": "a", "sha256": 5}]}',
    ],
)
def test_a_key_file_that_is_none_is_refused(text: str) -> None:
    """A server with a broken key file does not start."""
    with pytest.raises(InvalidSkillError, match="key file"):
        KeyRing.from_text(text)


class Issuer:
    """Signs tokens and gives its keys."""

    def __init__(self) -> None:
        from joserfc.jwk import ECKey

        self.keys = {"k1": ECKey.generate_key("P-256", {"kid": "k1"})}
        self.asked = 0

    async def fetch(self) -> dict[str, Any]:
        """Return the JWKS."""
        self.asked += 1
        return {
            "keys": [
                {**key.as_dict(private=False), "kid": kid}
                for kid, key in self.keys.items()
            ]
        }

    def token(self, *, kid: str = "k1", **claims: Any) -> str:
        """Return a token that is good but for what *claims* change; a claim of None is
        left out.
        """
        from joserfc import jwt

        said = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": "ann",
            "exp": 2000,
            "scope": "skill:invoke",
            **claims,
        }
        kept = {name: value for name, value in said.items() if value is not None}
        return jwt.encode({"alg": "ES256", "kid": kid}, kept, self.keys[kid])


def jwt_callers(issuer: Issuer, now: list[float]) -> Any:
    """Return the authenticator for *issuer*, by a clock that the test moves."""
    from skillruntime.server import JwtCallers

    return JwtCallers(
        ISSUER, AUDIENCE, issuer.fetch, scope="skill:invoke", clock=lambda: now[0]
    )


async def test_a_token_of_the_issuer_is_a_caller() -> None:
    """By its subject; no token is anonymous, and another kind of bearer token is left
    to the next authenticator.
    """
    callers = jwt_callers(Issuer(), [1000.0])
    issuer = Issuer()
    callers = jwt_callers(issuer, [1000.0])

    assert await callers(bearer(issuer.token()), None) == Principal(
        "https://issuer.example ann", scopes=frozenset({"skill:invoke"})
    )
    assert await callers(WireRequest("GET", "http://x/"), None) is None
    assert await callers(bearer("skr_an_api_key"), None) is None


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": ["skill:invoke", "openid"]}, {"skill:invoke", "openid"}),
        ({"scope": None, "scp": "skill:invoke openid"}, {"skill:invoke", "openid"}),
        ({"scope": None, "scp": ["skill:invoke"]}, {"skill:invoke"}),
        ({"scope": ["skill:invoke", 1]}, {"skill:invoke"}),
    ],
)
async def test_scopes_are_read_in_the_forms_that_issuers_write(
    claims: dict[str, Any], scopes: set[str]
) -> None:
    """RFC 8693 has a string in `scope`; Duende IdentityServer writes a list there,
    Entra and Okta write `scp`.
    """
    issuer = Issuer()

    principal = await jwt_callers(issuer, [1000.0])(
        bearer(issuer.token(**claims)), None
    )

    assert principal is not None and principal.scopes == frozenset(scopes)


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": {"skill:invoke": 1}},
        {"scope": ["a skill:invoke"]},
        {"scp": "skill:read", "scope": None},
    ],
)
async def test_scopes_in_another_form_grant_nothing(claims: dict[str, Any]) -> None:
    """Also where only `scp` names scopes: a token that may read alone must not
    invoke.
    """
    issuer = Issuer()

    with pytest.raises(BadCredentialsError):
        await jwt_callers(issuer, [1000.0])(bearer(issuer.token(**claims)), None)


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": 900},
        {"exp": None},
        {"iss": "https://other"},
        {"aud": "other"},
        {"sub": None},
        {"scope": "skill:read"},
    ],
    ids=lambda claims: next(iter(claims)),
)
async def test_a_token_that_is_not_for_us_is_refused(claims: dict[str, Any]) -> None:
    """Expired, without an end, of another issuer, for another audience, without a
    subject, without the scope.
    """
    issuer = Issuer()

    with pytest.raises(BadCredentialsError):
        await jwt_callers(issuer, [1000.0])(bearer(issuer.token(**claims)), None)


async def test_forged_tokens_are_refused() -> None:
    """Signed by another key, not at all, with the public key as a secret, with a header
    of wrong types, or too long.
    """
    issuer, forger = Issuer(), Issuer()
    callers = jwt_callers(issuer, [1000.0])
    head, body, _ = issuer.token().split(".")
    unsigned = base64.urlsafe_b64encode(b'{"alg":"none"}').decode().rstrip("=")
    critical = (
        base64.urlsafe_b64encode(b'{"alg":"ES256","kid":"k1","crit":1}')
        .decode()
        .rstrip("=")
    )
    symmetric = (
        base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"k1"}').decode().rstrip("=")
    )

    forged = [
        forger.token(),
        f"{unsigned}.{body}.",
        f"{symmetric}.{body}.AAAA",
        f"{critical}.{body}.AAAA",
        f"{head}.{body}.AAAA",
        "a.b.c",
        "x" * 9000 + "..",
    ]
    for token in forged:
        with pytest.raises(BadCredentialsError):
            await callers(bearer(token), None)


async def test_new_keys_of_the_issuer_are_found_but_not_asked_for_by_every_other_caller() -> (
    None
):
    """An unknown key id is looked up at most once a minute."""
    issuer, now = Issuer(), [1000.0]
    callers = jwt_callers(issuer, now)
    await callers(bearer(issuer.token()), None)
    from joserfc.jwk import ECKey

    issuer.keys["k2"] = ECKey.generate_key("P-256", {"kid": "k2"})
    for _ in range(5):
        with pytest.raises(BadCredentialsError):
            await callers(bearer(issuer.token(kid="k2")), None)
    asked_meanwhile = issuer.asked
    now[0] += 61

    assert (await callers(bearer(issuer.token(kid="k2")), None)).id.endswith("ann")
    assert asked_meanwhile == 1 and issuer.asked == 2


async def test_an_issuer_that_is_away_is_asked_now_and_then() -> None:
    """A token sent meanwhile is answered 503; a flood of forged tokens is not passed on
    to the issuer.
    """
    from skillruntime.server import JwtCallers

    issuer, now = Issuer(), [1000.0]
    tried: list[float] = []

    async def away() -> dict[str, Any]:
        tried.append(now[0])
        if len(tried) > 1:
            return await issuer.fetch()
        raise InvalidSkillError("The issuer's keys cannot be read")

    callers = JwtCallers(ISSUER, AUDIENCE, away, clock=lambda: now[0])
    for _ in range(3):
        with pytest.raises(RefusedError) as raised:
            await callers(bearer(issuer.token()), None)
    now[0] += 6

    assert raised.value.document.http_status == 503
    assert (await callers(bearer(issuer.token()), None)).id.endswith("ann")
    assert tried == [1000.0, 1006.0]


async def test_an_issuers_keys_are_read_from_a_file(tmp_path: Path) -> None:
    """A place that cannot be read or does not hold a JWKS is reported."""
    from skillruntime.server import keys_from

    issuer = Issuer()
    good, bad = tmp_path / "jwks.json", tmp_path / "bad.json"
    good.write_text(json.dumps(await issuer.fetch()))
    bad.write_text("[]")

    assert (await keys_from(str(good))())["keys"][0]["kid"] == "k1"
    for place in (bad, tmp_path / "none.json"):
        with pytest.raises(InvalidSkillError):
            await keys_from(str(place))()


async def test_the_first_authenticator_that_knows_the_caller_counts() -> None:
    """Keys and tokens side by side; what all refuse is refused."""
    issuer = Issuer()
    both = any_of(
        [KeyRing({hash_key("k"): Principal("ann")}), jwt_callers(issuer, [1000.0])]
    )

    assert (await both(bearer("k"), None)) == Principal("ann")
    assert (await both(bearer(issuer.token()), None)) is not None
    with pytest.raises(BadCredentialsError):
        await both(bearer("wrong"), None)


# OAuth from the client's side


class TokenEndpoint:
    """Answers token requests with what the test says."""

    def __init__(self, *answers: dict[str, Any], status: int = 200) -> None:
        self.answers = list(answers)
        self.status = status
        self.asked: list[tuple[WireRequest, dict[str, str]]] = []

    async def __call__(self, request: WireRequest) -> WireResponse:
        form = {
            name: values[0] for name, values in parse_qs(request.body.decode()).items()
        }
        self.asked.append((request, form))
        await anyio.lowlevel.checkpoint()
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        return WireResponse(self.status, {}, json.dumps(answer).encode())


async def test_many_calls_fetch_one_token() -> None:
    """However many wait for it; and the client's secret goes as RFC 6749, 2.3.1
    says.
    """
    endpoint = TokenEndpoint(
        {"access_token": "t1", "token_type": "Bearer", "expires_in": 3600}
    )
    credentials = ClientCredentials("me:you", "s e", transport=endpoint)
    shown: list[Any] = []

    async with anyio.create_task_group() as tasks:
        for _ in range(50):
            tasks.start_soon(lambda: _collect(credentials, shown))

    request, form = endpoint.asked[0]
    assert len(endpoint.asked) == 1
    assert form == {"grant_type": "client_credentials", "scope": "skill:invoke"}
    assert (
        base64.b64decode(request.headers["authorization"].removeprefix("Basic "))
        == b"me%3Ayou:s+e"
    )
    assert {each.headers["authorization"] for each in shown} == {"Bearer t1"}
    assert "t1" not in repr(shown[0]) and "s e" not in repr(credentials)


async def _collect(credentials: ClientCredentials, shown: list[Any]) -> None:
    shown.append(await credentials(OAUTH, False))


async def test_a_token_is_renewed_before_it_expires_and_when_it_was_refused() -> None:
    """With the client's secret again: RFC 6749, 4.4.3, knows no refresh token for
    programs.
    """
    now = [1000.0]
    endpoint = TokenEndpoint(
        {
            "access_token": "t1",
            "token_type": "bearer",
            "expires_in": 100,
            "refresh_token": "r1",
        },
        {"access_token": "t2", "token_type": "bearer", "expires_in": 100},
        {"access_token": "t3", "token_type": "bearer", "expires_in": 100},
    )
    credentials = ClientCredentials(
        "me", "secret", transport=endpoint, clock=lambda: now[0]
    )

    first = await credentials(OAUTH, False)
    again = await credentials(OAUTH, False)
    now[0] += 80
    renewed = await credentials(OAUTH, False)
    refused = await credentials(OAUTH, True)

    shown = [each.headers["authorization"] for each in (first, again, renewed, refused)]
    assert shown == ["Bearer t1", "Bearer t1", "Bearer t2", "Bearer t3"]
    assert [form["grant_type"] for _, form in endpoint.asked] == [
        "client_credentials"
    ] * 3


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        (
            {"error": "invalid_client", "error_description": "your secret s3cr3t"},
            401,
            "invalid_client",
        ),
        ({"token_type": "bearer"}, 200, "no bearer token"),
        ({"access_token": "x", "token_type": "mac"}, 200, "no bearer token"),
        ({"access_token": ""}, 200, "no bearer token"),
        ({"access_token": "x\r\nEvil: 1"}, 200, "no bearer token"),
        ({"error": "\x1b[31m"}, 400, "no bearer token"),
        ([], 200, "without JSON"),
    ],
)
async def test_a_refused_token_is_an_error_without_secrets(
    answer: Any, status: int, said: str
) -> None:
    """Its code is reported; other text of the endpoint may quote a secret and is
    not.
    """
    credentials = ClientCredentials(
        "me", "s3cr3t", transport=TokenEndpoint(answer, status=status)
    )

    with pytest.raises(RemoteError, match=said) as raised:
        await credentials(OAUTH, False)

    assert "s3cr3t" not in str(raised.value)


async def test_a_person_authorises_with_pkce() -> None:
    """RFC 7636: the verifier is shown at the token endpoint alone; another state is
    refused.
    """
    needs.package("authlib")
    endpoint = TokenEndpoint({"access_token": "t", "token_type": "bearer"})
    flow = AuthorizationCode.begin(CONFIG, "cli", "http://127.0.0.1:9999/callback")
    asked = parse_qs(urlsplit(flow.address).query)

    token = await flow.finish(
        f"http://127.0.0.1:9999/callback?code=c0de&state={flow.state}",
        transport=endpoint,
    )
    with pytest.raises(RemoteError, match="a different state"):
        await flow.finish(
            "http://127.0.0.1:9999/callback?code=c0de&state=other", transport=endpoint
        )
    with pytest.raises(RemoteError, match="access_denied"):
        await flow.finish(
            f"http://x/?error=access_denied&state={flow.state}", transport=endpoint
        )

    _, form = endpoint.asked[0]
    assert token.access == "t"
    assert asked["code_challenge_method"] == ["S256"] and asked["scope"] == [
        "skill:invoke"
    ]
    assert form["code_verifier"] == flow.verifier and form["client_id"] == "cli"


async def test_custom_credentials_go_into_the_body() -> None:
    """Section 6.3's ``caller.credentials``, for ``custom`` alone."""
    shown = await CustomCredentials(lambda auth: {"ticket": auth.more["realm"]})(
        AuthConfig(AuthType.CUSTOM, more={"realm": "west"}), False
    )

    assert shown.headers == {} and shown.body == {"ticket": "west"}


def test_a_bucket_fills_by_the_clock() -> None:
    """So many a minute, as many at once; callers are apart, and the longest unseen is
    forgotten.
    """
    now = [0.0]
    limiter = RateLimiter(2, clock=lambda: now[0], remembered=2)

    first = [limiter.take("a") for _ in range(3)]
    now[0] = 30.0
    later = limiter.take("a")
    others = [limiter.take(name) for name in ("b", "c")]

    assert first == [0.0, 0.0, 30.0]
    assert later == 0.0
    assert others == [0.0, 0.0]
    assert limiter.take("a") == 0.0, "forgotten, so its bucket is full again"
