"""A refusal at the start of a server says how to go on: each test does what it says,
and then asks whether the danger that it names is gone.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from skillruntime.catalog import discover
from skillruntime.contract import Contract
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime import SkillRuntime
from skillruntime.server import Hosting, add_key, describe, host_skills, revoke_keys
from tests import needs
from tests.in_process import run_command

needs.package("uvicorn")
pytestmark = pytest.mark.anyio

OUTER = [
    ["--host", "0.0.0.0"],
    ["--base-url", "https://skills.example"],
    ["--trusted-proxy", "10.0.0.0/8"],
    ["--allow-host", "skills.example"],
]
ISSUER_KEYS = {
    "keys": [
        {
            "kty": "OKP",
            "crv": "Ed25519",
            "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "kid": "k1",
        }
    ]
}


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    """Two skills to read: one says nothing of who may call it, the other that it is
    public.
    """
    directory = tmp_path / "skills"
    for name in ("quiet", "open"):
        (directory / name).mkdir(parents=True)
        (directory / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Says how\n---\nSay it.\n", "utf-8"
        )
    document = {"version": "1.0.0", "description": "Says how", "input": {}}
    described = describe(
        "open", Contract.from_dict(document), base_url="https://example.com"
    )
    written = {**described.to_dict(), "access": "public"}
    (directory / "open" / "descriptor.json").write_text(json.dumps(written), "utf-8")
    return directory


def while_serving(
    ask: Callable[[str], list[int]], *options: str, **environment: str
) -> list[int]:
    """Serve in this process, and return what *ask* finds out at the server's address;
    nothing, if the server does not start.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    answers: list[int] = []
    has_ended = threading.Event()

    def ask_and_end() -> None:
        while not has_ended.is_set():
            with suppress(httpx2.ConnectError):
                answers.extend(ask(f"http://127.0.0.1:{port}"))
                os.kill(os.getpid(), signal.SIGTERM)
                return

    # Of the test process, if the server has left meanwhile.
    before = signal.signal(signal.SIGTERM, lambda *arguments: None)
    client = threading.Thread(target=ask_and_end)
    client.start()
    try:
        run_command("serve", "--port", str(port), *options, **environment)
    finally:
        has_ended.set()
        client.join()
        signal.signal(signal.SIGTERM, before)
    return answers


def status_of(
    url: str, skill: str = "quiet", key: str | None = None, host: str | None = None
) -> int:
    """Call a skill, and return the status of the answer."""
    headers = {"prefer": "wait=30"}
    if key is not None:
        headers["x-api-key"] = key
    if host is not None:
        headers["host"] = host
    document = {
        "caller": {"id": "t", "type": "service"},
        "skill_id": skill,
        "inputs": {},
    }
    return httpx2.post(
        f"{url}/skills/{skill}/invoke", json=document, headers=headers, timeout=300
    ).status_code


def the_command_in(message: str) -> list[str]:
    """Return the arguments of the command that *message* names, for the caller ann."""
    found = re.search(r"`skillruntime (.*?)`", message)
    assert found is not None, message
    return shlex.split(found[1].replace("NAME", "ann"))


@pytest.mark.parametrize("options", OUTER)
def test_the_key_that_a_refusal_asks_for_closes_the_server(
    options: list[str], skills: Path, tmp_path: Path
) -> None:
    """A listening address, a base URL, a proxy or a name beyond this machine: a call
    without the key is refused, whatever the skill says of itself.
    """
    given = ["-s", str(skills), "--data", str(tmp_path / "data dir"), *options]
    refused = run_command("serve", "--port", "0", *given)
    made = run_command(*the_command_in(refused.stderr))
    host = "skills.example" if "--allow-host" in options else None

    statuses = while_serving(
        lambda url: [
            status_of(url, "quiet", host=host),
            status_of(url, "open", host=host),
            status_of(url, "quiet", made.stdout.strip(), host),
            status_of(url, "open", made.stdout.strip(), host),
        ],
        *given,
    )

    assert refused.exit_code == 1
    assert "Everyone who reaches" in refused.stderr
    assert made.exit_code == 0
    assert statuses == [401, 401, 200, 200]


def test_without_public_access_a_server_with_keys_asks_for_them(
    skills: Path, tmp_path: Path
) -> None:
    """``--access public`` beside keys: the first way out closes the server, the second
    one is a decision to open it.
    """
    given = ["-s", str(skills), "--data", str(tmp_path / "data")]
    key = run_command("serve", *given[2:], "--new-key", "ann").stdout.strip()
    refused = run_command("serve", "--port", "0", *given, "--access", "public")
    closed = while_serving(
        lambda url: [status_of(url), status_of(url, key=key)], *given
    )
    opened = while_serving(
        lambda url: [status_of(url), status_of(url, "open"), status_of(url, key=key)],
        *given,
        "--access",
        "public",
        "--public",
    )

    assert refused.exit_code == 1
    assert "leave out --access public" in refused.stderr
    assert "or serve everyone with --public" in refused.stderr
    assert closed == [401, 200]
    assert opened == [200, 200, 200]


def test_a_trusted_skill_may_make_itself_public(skills: Path, tmp_path: Path) -> None:
    """The operator who trusts a directory has said so for its descriptors too."""
    given = ["-s", str(skills), "--data", str(tmp_path / "data")]
    key = run_command("serve", *given[2:], "--new-key", "ann").stdout.strip()
    statuses = while_serving(
        lambda url: [
            status_of(url),
            status_of(url, "open"),
            status_of(url, "open", key),
        ],
        *given,
        "--trust",
    )

    assert statuses == [401, 200, 200]


def test_tokens_close_a_server_as_keys_do(skills: Path, tmp_path: Path) -> None:
    """``--jwks`` asks for the issuer and the audience; with them, a call needs a
    token.
    """
    needs.package("joserfc")
    keys = tmp_path / "jwks.json"
    keys.write_text(json.dumps(ISSUER_KEYS), "utf-8")
    given = ["-s", str(skills), "--data", str(tmp_path / "data"), "--jwks", str(keys)]
    refused = run_command("serve", "--port", "0", *given)
    statuses = while_serving(
        lambda url: [status_of(url), status_of(url, "open")],
        *given,
        "--issuer",
        "https://issuer.example",
        "--audience",
        "a",
    )

    assert refused.exit_code == 2
    assert "--jwks needs --issuer and --audience" in refused.stderr
    assert statuses == [401, 401]


def test_revoking_the_last_key_opens_nothing(skills: Path, tmp_path: Path) -> None:
    """The next start still asks for a key."""
    keys = tmp_path / "data" / "keys.json"
    add_key(keys, "ann")
    revoke_keys(keys, "ann")
    statuses = while_serving(
        lambda url: [status_of(url), status_of(url, "open")],
        "-s",
        str(skills),
        "--data",
        str(tmp_path / "data"),
    )

    assert statuses == [401, 401]


def test_a_server_for_this_machine_alone_needs_no_key(
    skills: Path, tmp_path: Path
) -> None:
    """Without keys and behind no proxy, every skill is public as before."""
    statuses = while_serving(
        lambda url: [status_of(url), status_of(url, "open")],
        "-s",
        str(skills),
        "--data",
        str(tmp_path / "data"),
    )
    ignored = (tmp_path / "data" / ".gitignore").read_text("utf-8")

    assert statuses == [200, 200]
    assert "*" in ignored.splitlines()


@pytest.mark.parametrize(
    "options",
    [
        ["--host", "0.0.0.0"],
        ["--base-url", "nonsense"],
        ["--base-url", "https://skills.example"],
    ],
)
def test_a_server_that_refuses_leaves_nothing(
    options: list[str], skills: Path, tmp_path: Path
) -> None:
    """Neither its secret nor its directory."""
    data = tmp_path / "data"
    refused = run_command("serve", "-s", str(skills), "--data", str(data), *options)

    assert refused.exit_code == 1
    assert not data.exists()


def test_a_server_whose_port_is_taken_leaves_no_secret(
    skills: Path, tmp_path: Path
) -> None:
    """The secret is written when nothing can refuse any more."""
    data = tmp_path / "data"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        refused = run_command(
            "serve", "-s", str(skills), "--data", str(data), "--port", port
        )

    assert refused.exit_code == 1
    assert "cannot listen at" in refused.stderr
    assert not (data / "secret").exists()
    assert (data / ".gitignore").exists()


def test_the_first_key_keeps_its_directory_out_of_repositories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``.skillruntime`` has a .gitignore; a directory of the user's own gets none."""
    own = tmp_path / "own"
    own.mkdir()
    (tmp_path / "project" / ".skillruntime").mkdir(parents=True)  # an earlier version's
    monkeypatch.chdir(tmp_path / "project")
    run_command("serve", "--new-key", "ann")
    run_command("serve", "--data", str(own), "--new-key", "ann")

    assert Path(".skillruntime/.gitignore").read_text("utf-8").endswith("\n*\n")
    assert [each.name for each in own.iterdir()] == ["keys.json"]


@pytest.mark.parametrize(
    "options",
    [
        ["--access", "private"],
        ["--public"],
        ["--base-url", "https://skills.example"],
        ["--trusted-proxy", "10.0.0.5"],
        ["--allow-host", "skills.example"],
        ["--jwks", "keys.json"],
        ["--authenticator", "here:there"],
        ["--new-key", "ann"],
    ],
)
def test_mcp_names_the_token_instead_of_an_option_that_it_would_ignore(
    options: list[str],
) -> None:
    """What a server ignores, its operator relies on."""
    refused = run_command("serve", "--mcp", "--http", *options)

    assert refused.exit_code == 2
    assert f"{options[0]} is not for --mcp" in refused.stderr
    assert "clients send SKILLRUNTIME_MCP_TOKEN" in " ".join(refused.stderr.split())


def test_the_token_that_mcp_names_closes_it(skills: Path) -> None:
    """Set as the refusal says, every request needs it."""
    needs.package("mcp")
    token = {"authorization": "Bearer the-token"}
    statuses = while_serving(
        lambda url: [
            httpx2.post(f"{url}/mcp", json={}, timeout=300).status_code,
            httpx2.post(f"{url}/mcp", json={}, headers=token, timeout=300).status_code,
        ],
        "--mcp",
        "--http",
        "-s",
        str(skills),
        SKILLRUNTIME_MCP_TOKEN="the-token",
    )

    assert statuses[0] == 401
    assert statuses[1] not in (401, 403, 421)


@pytest.mark.parametrize(
    ("options", "address"),
    [
        ({}, None),
        ({"host": "127.0.0.9"}, None),
        ({"host": "LOCALHOST"}, None),
        ({"base_url": "http://localhost:8400"}, None),
        ({"base_url": "http://[::1]:8400"}, None),
        ({"base_url": "http://app.localhost"}, None),
        ({"trusted_proxies": ("127.0.0.0/8", "::1")}, None),
        ({"allowed_hosts": ("app.localhost", "127.0.0.1")}, None),
        ({"host": "::"}, "::"),
        ({"host": "192.168.1.5"}, "192.168.1.5"),
        ({"host": "localhost.example"}, "localhost.example"),
        ({"base_url": "https://a.example"}, "https://a.example"),
        ({"base_url": "http://127.0.0.1.nip.io"}, "http://127.0.0.1.nip.io"),
        ({"trusted_proxies": ("127.0.0.1", "0.0.0.0/0")}, "the proxy 0.0.0.0/0"),
        ({"allowed_hosts": ("localhost", "a.example")}, "a.example"),
    ],
)
async def test_what_reaches_beyond_this_machine(
    options: dict[str, Any], address: str | None, skills: Path
) -> None:
    """Every address that is not a loopback one, in each of the places that name one.

    What only this machine reaches gets as far as the limit of a skill that is not
    there.
    """
    hosting = Hosting(**{"port": 0, "per_skill": {"none": 1}, **options})
    with pytest.raises(SkillRuntimeError) as refused:
        await host_skills(SkillRuntime(discover(skills)), hosting)

    if address is None:
        assert "limits no skill that is served" in str(refused.value)
    else:
        assert str(refused.value).startswith(f"Everyone who reaches {address} could")


def test_a_limit_of_no_skill_is_refused(skills: Path, tmp_path: Path) -> None:
    """A misspelt id would limit nothing; the refusal lists the ids."""
    given = ["-s", str(skills), "--data", str(tmp_path / "data"), "--port", "0"]
    refused = run_command("serve", *given, "--per-skill", "queit=2")

    assert refused.exit_code == 1
    assert (
        "--per-skill 'queit' limits no skill that is served; their ids are open, quiet"
        in " ".join(refused.stderr.split())
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "does not hold a JWKS"),
        ('{"keys": []}', "does not hold keys that can be read"),
        ('{"keys": [1]}', "does not hold keys that can be read"),
        ('{"keys": [{"kty": "no"}]}', "does not hold keys that can be read"),
    ],
)
def test_a_file_without_keys_of_an_issuer_is_refused(
    text: str, reason: str, skills: Path, tmp_path: Path
) -> None:
    """Each token would be refused, and nothing would say why."""
    needs.package("joserfc")
    keys = tmp_path / "jwks.json"
    keys.write_text(text, "utf-8")
    given = ["-s", str(skills), "--data", str(tmp_path / "data"), "--jwks", str(keys)]
    refused = run_command(
        "serve", *given, "--issuer", "https://issuer.example", "--audience", "a"
    )

    assert refused.exit_code == 2
    assert reason in " ".join(refused.stderr.split())
