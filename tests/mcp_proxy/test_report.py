"""The log and the report on it: counts, places, and no value that the user did not ask
for.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from click.testing import CliRunner

from skillruntime.adapters.mcp_proxy import Options, open_log
from skillruntime.adapters.mcp_proxy.reports.report import read_report, to_html
from skillruntime.cli import group
from tests.mcp_proxy.messages import call, known, to_bytes

SECRET = {
    "name": "login",
    "inputSchema": {
        "type": "object",
        "required": ["pin"],
        "properties": {
            "pin": {"type": "string", "format": "password"},
            "n": {"type": "integer"},
        },
    },
}


def logged(path: Path, options: Options | None = None) -> list[str]:
    """Return the log of four calls: one passes, one is repaired, one refused, one
    rejected by the server.
    """
    session = known(options=options, log=open_log(path))
    session.from_client(call('{"topic": "private"}'))
    error = {"code": -32602, "message": "Invalid arguments for tool digest"}
    session.from_server(to_bytes({"jsonrpc": "2.0", "id": 7, "error": error}))
    session.from_client(call('{"topic": "private", "limit": "5"}', id="8"))
    session.from_client(call('{"topic": "private", "limit": "many"}', id="9"))
    return path.read_text(encoding="utf-8").splitlines()


def test_a_log_has_rules_and_paths_and_no_values(tmp_path: Path) -> None:
    """Arguments may be private; the file is readable by its owner alone."""
    lines = logged(tmp_path / "log")

    assert [json.loads(line)["event"] for line in lines] == [
        "call",
        "converted",
        "schema",
        "call",
        "call",
    ]
    assert json.loads(lines[3])["repairs"] == [
        {"path": "/limit", "rule": "number-text"}
    ]
    assert json.loads(lines[4])["errors"] == [
        {"path": "/limit", "code": "INVALID_INPUT"}
    ]
    assert "private" not in "".join(lines) and "many" not in "".join(lines)
    assert (tmp_path / "log").stat().st_mode & 0o077 == 0


def test_values_are_logged_where_they_are_asked_for_and_secrets_never(
    tmp_path: Path,
) -> None:
    """A property that the schema marks as a password stays out of the log and of
    `_meta`.
    """
    session = known(
        SECRET, options=Options(log_values=True), log=open_log(tmp_path / "log")
    )
    session.from_client(call('{"pin": 4711, "n": "5"}', name="login"))

    [(_, answer)] = session.from_server(b'{"jsonrpc":"2.0","id":7,"result":{}}')

    line = (tmp_path / "log").read_text()
    assert '"before":"\\"5\\"","after":"5"' in line
    assert "4711" not in line and b"4711" not in answer


def test_the_report_counts_calls_once(tmp_path: Path) -> None:
    """A call whose error was converted is counted as that, and not as passed too."""
    report = read_report([*logged(tmp_path / "log"), "torn li"])

    assert report.tools == {
        "digest": Counter(converted=1, repaired=1, refused=1, passed=0)
    }
    assert report.places == {
        ("digest", "/limit", "number-text"): 1,
        ("digest", "/limit", "INVALID_INPUT"): 1,
    }
    assert report.unreadable == 1


def test_the_page_escapes_what_servers_name() -> None:
    """A tool may be called anything."""
    page = to_html(
        read_report(
            ['{"event":"call","tool":"<script>","outcome":"passed","client":"<b>"}']
        )
    )

    assert "&lt;script&gt;" in page and "<script>" not in page and "<td><b>" not in page


def test_the_command_draws_a_table_a_page_and_json(tmp_path: Path) -> None:
    """Three forms of the same counts."""
    logged(tmp_path / "log")
    arguments = ["mcp-proxy", "report", str(tmp_path / "log")]

    drawn = CliRunner().invoke(
        group, [*arguments, "--html", str(tmp_path / "page.html")]
    )
    printed = CliRunner().invoke(group, [*arguments, "--json"])

    assert "/limit" in drawn.output and "number-text" in drawn.output
    assert "number-text" in (tmp_path / "page.html").read_text()
    assert json.loads(printed.output)["total"] == {
        "converted": 1,
        "repaired": 1,
        "refused": 1,
    }


def test_a_narrow_terminal_cuts_no_number(tmp_path: Path) -> None:
    """Five digits, in forty columns."""
    entry = (
        '{"event":"call","tool":"all_flights","outcome":"%s",'
        '"errors":[{"path":"/passengers","code":"MISSING"}]}'
    )
    log = tmp_path / "log"
    log.write_text(
        "\n".join([entry % "passed"] * 12_345 + [entry % "refused"] * 23_456),
        encoding="utf-8",
    )

    drawn = (
        CliRunner()
        .invoke(group, ["mcp-proxy", "report", str(log)], env={"COLUMNS": "40"})
        .output
    )

    assert all(number in drawn for number in ("12,345", "23,456", "35,801"))
    assert max(map(len, drawn.splitlines())) <= 40


def test_wrap_prints_and_does_not_write(tmp_path: Path) -> None:
    """The user decides where the new file goes."""
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"a": {"command": "b", "args": []}}}')

    result = CliRunner().invoke(
        group, ["mcp-proxy", "wrap", str(file), "--policy", "strict"]
    )

    assert json.loads(result.output)["mcpServers"]["a"]["args"] == [
        "mcp-proxy",
        "--policy",
        "strict",
        "--",
        "b",
    ]
    assert file.read_text() == '{"mcpServers": {"a": {"command": "b", "args": []}}}'
