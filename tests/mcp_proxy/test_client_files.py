"""Configuration files of clients: wrapped, wrapped again, and back, with comments and
layout.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from random import Random

import pytest

from skillruntime.adapters.mcp_proxy.client_files import (
    ClientFileError,
    launcher,
    unwrapped,
    wrapped,
)

CLAUDE = """{
  "mcpServers": {
    "git": {
      "command": "uvx",
      "args": [
        "mcp-server-git",
        "--repository", "."
      ],
      "env": {"A": "é"}
    },
    "bare": {"command": "server"},
    "empty": {"command": "server", "args": []}
  },
  "other": [1.50]
}
"""
VS_CODE = """// my servers
{
  "servers": {
    /* "off": {"command": "x"}, */
    "time": {
      "type": "stdio", // on stdio
      "command": "python",
      "args": ["-m", "mcp_server_time", /* zone */ "--local-timezone=UTC",],
    },
  },
  "inputs": [{"id": "url", "default": "https://example.org"}],
}
"""
CODEX = """# my servers
model = "gpt-5"

[mcp_servers.files]
command = "npx"  # node
args = [
  "-y",
  "server-filesystem",
]

[mcp_servers.files.env]
A = "1"

[mcp_servers."web"]
url = "https://example.org/mcp"
bearer_token_env_var = "TOKEN"
"""


@pytest.mark.parametrize("text", [CLAUDE, VS_CODE, CLAUDE.replace("\n", "\r\n")])
def test_unwrap_gives_back_every_byte(text: str) -> None:
    """Comments, trailing commas, line endings and the order stay in both directions."""
    assert unwrapped(wrapped(text, ["--log", "calls.jsonl"]).text).text == text


@pytest.mark.parametrize(
    ("text", "toml"), [(CLAUDE, False), (VS_CODE, False), (CODEX, True)]
)
def test_both_are_idempotent(text: str, toml: bool) -> None:
    """A server behind the proxy is not put behind it twice, and one that is not
    stays.
    """
    once = wrapped(text, toml=toml).text
    back = unwrapped(once, toml=toml).text

    assert wrapped(once, toml=toml).text == once
    assert unwrapped(back, toml=toml).text == back


def test_the_command_of_a_server_goes_behind_the_proxy() -> None:
    """Its arguments and its environment are its own."""
    servers = json.loads(wrapped(CLAUDE, ["--policy", "strict"]).text)["mcpServers"]

    before = ["mcp-proxy", "--policy", "strict", "--"]
    assert servers["git"] == {
        "command": "skillruntime",
        "args": [*before, "uvx", "mcp-server-git", "--repository", "."],
        "env": {"A": "é"},
    }
    assert servers["bare"] == {"command": "skillruntime", "args": [*before, "server"]}


def test_comments_stay_where_they_are() -> None:
    """VS Code reads JSON with comments, and people write them."""
    text = wrapped(VS_CODE).text

    assert '"command": "skillruntime",\n' in text
    assert (
        '"args": ["mcp-proxy", "--", "python", "-m", "mcp_server_time", /* zone */ '
        '"--local-timezone=UTC",],' in text
    )
    assert '/* "off": {"command": "x"}, */' in text


def test_a_server_at_a_url_is_started_as_a_proxy_to_it() -> None:
    """Its header values go into the environment: arguments are seen in the list of
    processes.
    """
    entry = {
        "type": "http",
        "url": "https://example.org/mcp",
        "headers": {"Authorization": "Bearer ${TOKEN}"},
    }
    text = json.dumps({"mcpServers": {"web": entry}})

    new = wrapped(text).text

    assert json.loads(new)["mcpServers"]["web"] == {
        "type": "stdio",
        "command": "skillruntime",
        "args": [
            "mcp-proxy",
            "--header",
            "Authorization=env:SKILLRUNTIME_HEADER_AUTHORIZATION",
            "https://example.org/mcp",
        ],
        "env": {"SKILLRUNTIME_HEADER_AUTHORIZATION": "Bearer ${TOKEN}"},
    }
    assert json.loads(unwrapped(new).text) == json.loads(text)


@pytest.mark.parametrize("word", ["http", "streamable-http", "streamableHttp"])
def test_the_word_of_a_client_for_the_transport_comes_back(word: str) -> None:
    """Clients write streamable HTTP in three ways, and each reads its own."""
    text = json.dumps(
        {"mcpServers": {"web": {"type": word, "url": "https://example.org/mcp"}}}
    )

    new = wrapped(text).text

    assert json.loads(new)["mcpServers"]["web"]["type"] == "stdio"
    assert (wrapped(new).text, unwrapped(new).text) == (new, text)


def test_a_server_that_cannot_be_wrapped_stays_with_a_note() -> None:
    """The old HTTP+SSE transport is not spoken."""
    text = '{"mcpServers": {"old": {"type": "sse", "url": "https://example.org/sse"}}}'

    edited = wrapped(text)

    assert edited.text == text
    assert edited.notes[0].startswith("old: not wrapped")


def test_codex_keeps_its_toml() -> None:
    """Comments stay, and the values come back."""
    new = wrapped(CODEX, toml=True).text

    servers = tomllib.loads(new)["mcp_servers"]
    assert servers["files"]["command"] == "skillruntime"
    assert servers["files"]["args"] == [
        "mcp-proxy",
        "--",
        "npx",
        "-y",
        "server-filesystem",
    ]
    assert servers["web"]["args"] == [
        "mcp-proxy",
        "--bearer-env",
        "TOKEN",
        "https://example.org/mcp",
    ]
    assert "# my servers" in new and "# node" in new
    assert unwrapped(new, toml=True).text == CODEX


@pytest.mark.parametrize(
    "text", ["", "[]", '{"a": 1}', '{"mcpServers": 5}', "{", '{"mcpServers": {}']
)
def test_other_files_are_named_as_such(text: str) -> None:
    """The error says what is wrong with the file."""
    with pytest.raises(ClientFileError):
        wrapped(text)


ODD = {
    "line endings of Windows": (
        "{\r\n"
        '  "mcpServers": {\r\n'
        '    "a": {\r\n'
        '      "command": "x",\r\n'
        '      "args": []\r\n'
        "    }\r\n"
        "  }\r\n"
        "}\r\n"
    ),
    "byte order mark": '\ufeff{"mcpServers": {"a": {"command": "x", "args": ["y"]}}}',
    "comments everywhere": (
        "// c\n"
        '{ /* b */ "servers": { "a": { "command": "x", // d\n'
        ' "args": [ // e\n'
        ' "a", /* k */ "b", ], }, }, }\n'
    ),
    "a separator of its own": '{"mcpServers": {"a": {"args": ["--", "y", "--"], "command": "x"}}}',
    "projects of Claude Code": (
        '{"projects": {"/p": {"mcpServers": {"a": {"command": "x"}}}}, "mcpServers": '
        '{"b": {"command": "y"}}}'
    ),
    "settings of VS Code": '{"editor.fontSize": 12, "mcp": {"servers": {"a": {"command": "x"}}}}',
    "a URL with headers": (
        "{\n"
        '\t"servers": {\n'
        '\t\t"a": {\n'
        '\t\t\t"type": "http", // t\n'
        '\t\t\t"url": "https://e.org/mcp",\n'
        '\t\t\t"headers": {"Authorization": "${input:x}", "X-A": "b"}\n'
        "\t\t}\n"
        "\t}\n"
        "}"
    ),
    "escapes and comments in texts": (
        '{"mcpServers": {"\u00e4": {"\\u0063ommand": "x", "args": ["http://e//", "/* '
        'no */", ",]"]}}}'
    ),
}
ODD_TOML = {
    "no arguments": "# top\n"
    "[mcp_servers.a]\n"
    'command = "x"\n'
    "\n"
    "[mcp_servers.a.env]\n"
    'K = "v"\n',
    "empty arguments": '[mcp_servers.a]\ncommand = "x"\nargs = []\n',
    "inline": 'mcp_servers = { a = { command = "x", args = ["y"] } }\n',
    "dotted keys": 'mcp_servers.a.command = "x"\nmcp_servers.a.args = ["y"]\n',
    "its own word first": '[mcp_servers.a]\ncommand = "x"\nargs = ["mcp-proxy", "y"]\n',
    "not a server": '[mcp_servers]\nb = 3\na.command = "x"\n',
}


@pytest.mark.parametrize(
    ("text", "toml"),
    [(each, False) for each in ODD.values()]
    + [(each, True) for each in ODD_TOML.values()],
)
def test_odd_files_are_wrapped_once_and_come_back_byte_for_byte(
    text: str, toml: bool
) -> None:
    """To wrap or to unwrap twice changes nothing more."""
    first = wrapped(text, ["--log", "l"], toml=toml).text

    assert first != text
    assert wrapped(first, ["--log", "l"], toml=toml).text == first
    assert unwrapped(first, toml=toml).text == text
    assert unwrapped(text, toml=toml).text == text


def test_what_cannot_be_wrapped_is_named_and_stays() -> None:
    """Each with the reason."""
    text = """{"mcpServers": {
        "a": {"command": "x", "args": "y z"}, "b": {"type": "sse", "url": "https://e.org"}, "c": {},
        "d": {"url": "https://e.org", "env": {"K": "v"}, "headers": {"X": "y"}}
    }}"""

    edited = wrapped(text)

    assert edited.text == text
    assert edited.notes == [
        "a: not wrapped: its args are not a list",
        "b: not wrapped: the transport 'sse' is not spoken",
        "c: not wrapped: it has neither a command nor a url",
        "d: not wrapped: it has a url, and env or args, which only a command has",
    ]


@pytest.mark.processes
@pytest.mark.parametrize("has_script", [True, False])
def test_the_proxy_is_started_from_anywhere(
    has_script: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that a desktop starts has another directory, and another PATH; so may
    Python.
    """
    if not has_script:
        monkeypatch.setattr("shutil.which", lambda name, **more: None)
    words = launcher()

    result = subprocess.run(
        [*words, "--version"],
        cwd=tmp_path,
        env={"PATH": ""},
        capture_output=True,
        check=False,
    )

    assert Path(words[0]).is_absolute()
    assert result.returncode == 0


def test_a_proxy_that_uvx_runs_is_started_by_uvx(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its own folder is in a cache, which may be emptied."""
    monkeypatch.setattr(sys, "prefix", "/home/me/.cache/uv/archive-v0/x1")
    monkeypatch.setattr("shutil.which", lambda name, **more: f"/usr/bin/{name}")
    text = (
        '{"mcpServers": {"a": {"command": "x", "args": ["y"]}, "b": {"url": '
        '"https://e.org"}}}'
    )

    words = launcher()
    new = wrapped(text, launcher=words).text

    assert words == ("/usr/bin/uvx", "--from", "skillruntime[standard]", "skillruntime")
    assert json.loads(new)["mcpServers"] == {
        "a": {
            "command": "/usr/bin/uvx",
            "args": [*words[1:], "mcp-proxy", "--", "x", "y"],
        },
        "b": {
            "command": "/usr/bin/uvx",
            "args": [*words[1:], "mcp-proxy", "https://e.org"],
        },
    }
    assert wrapped(new, launcher=words).text == new
    assert unwrapped(new).text == text


@pytest.mark.parametrize(
    "text",
    [
        '[mcp_servers.a]\r\nurl = "https://e.org"\r\n',
        "[mcp_servers.a]\n"
        "  url='https://e.org' # u\n"
        "  enabled = true\n"
        "  bearer_token_env_var = 'T' # t\n"
        "[b]\n"
        "x=1",
        "[mcp_servers.a]\n"
        'bearer_token_env_var = "T"\n'
        'url = "https://e.org"\n'
        "[mcp_servers.a.tools]\n"
        "x = 1\n",
    ],
)
def test_a_url_in_toml_comes_back_byte_for_byte(text: str) -> None:
    """Its place, its quotes and its comment stay."""
    new = wrapped(text, ["--log", "l"], toml=True).text

    assert tomllib.loads(new)["mcp_servers"]["a"]["args"][-1] == "https://e.org"
    assert unwrapped(new, toml=True).text == text


def test_what_could_not_be_undone_is_not_wrapped() -> None:
    """An inline table would get line breaks."""
    with pytest.raises(ClientFileError, match="by hand"):
        wrapped(
            'mcp_servers = { a = { url = "https://e.org", bearer_token_env_var = "T" '
            "} }\n",
            toml=True,
        )


def test_unwrap_keeps_what_was_changed_since() -> None:
    """An argument that the user added behind the proxy stays with the server."""
    new = wrapped(
        '{"mcpServers": {"a": {"command": "x", "args": ["y"]}}}',
        launcher=["/bin/skillruntime"],
    ).text

    changed = new.replace('"y"]', '"y", "--verbose"], "env": {"A": "b"}')

    assert unwrapped(changed).text == (
        '{"mcpServers": {"a": {"command": "x", "args": ["y", "--verbose"], "env": '
        '{"A": "b"}}}}'
    )


def layout(random: Random, value: object) -> str:
    """Return *value* as JSON with comments, laid out at random."""

    def space() -> str:
        return random.choice(
            ["", " ", "\n", "\r\n\t", " // a comment\n", "/* another */"]
        )

    def listed(items: list[str], brackets: str) -> str:
        comma = "," if items and random.random() < 0.3 else ""
        return (
            brackets[0]
            + ",".join(space() + item + space() for item in items)
            + comma
            + space()
            + brackets[1]
        )

    if isinstance(value, dict):
        return listed(
            [
                layout(random, key)
                + space()
                + ":"
                + space()
                + layout(random, value[key])
                for key in value
            ],
            "{}",
        )
    if isinstance(value, list):
        return listed([layout(random, item) for item in value], "[]")
    return json.dumps(value, ensure_ascii=random.random() < 0.5)


@pytest.mark.parametrize("seed", range(150))
def test_any_layout_comes_back_byte_for_byte_with_what_was_changed_elsewhere(
    seed: int,
) -> None:
    """Escapes, comments, line ends and commas; a server that was added since, and other
    settings, stay.
    """
    random = Random(seed)
    servers: dict[str, dict[str, object]] = {
        "a": {
            "command": random.choice(["npx", "C:\\bin\\ü.exe"]),
            "args": ["-y", '"ü"', "--"][: random.randrange(4)],
        },
        "b": {"command": "/usr/bin/ü"},
        "c": {
            "url": "http://localhost/ü",
            "headers": {"X-Key": "ü"},
            "type": random.choice(["http", "streamable-http"]),
        },
    }
    shuffled = {
        name: dict(random.sample(list(each.items()), len(each)))
        for name, each in servers.items()
    }
    text = layout(random, {"mcpServers": shuffled, "theme": "dark"})

    new = wrapped(text, ["--policy", "strict"], launcher=["/bin/skillruntime"]).text

    assert new.count("mcp-proxy") == 3
    assert unwrapped(new).text == text
    added = '"more": {"x": 1},\r\n "theme"'
    assert unwrapped(new.replace('"theme"', added)).text == text.replace(
        '"theme"', added
    )
