"""What the MCP proxy saves and costs, with real servers that run offline, each bare and
behind the proxy.

    python benchmarks/mcp_proxy.py [--peers DIRECTORY] [--only SERVER]

The servers are installed from npm and PyPI into folders of their own in DIRECTORY (by
default a temporary one). For each, a few valid calls are written below; damaged ones
are made of them by program, from the server's own schemas, in the ways in which models
damage calls. A damaged call succeeds if the server's result is the one that the valid
call has; it is wrong if the server ran it and the result is another one. What a server
receives and sends is recorded next to it, and compared with what the client sent and
received.
"""

from __future__ import annotations

import argparse
import http.server
import json
import os
import queue
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema

NPM = ["everything", "memory", "filesystem", "sequential-thinking", "sheet-music"]
PYPI = {
    "modern": ["mcp-server-time", "mcp-server-git", "mcp-server-fetch"],
    "handshake": [
        "mcp-server-sqlite",
        "mcp-text-editor",
        "mcp-server-calculator",
        "mcp<2",
    ],
}
PROXY = [sys.executable, "-m", "skillruntime", "mcp-proxy"]
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DEADLINE = 60.0
COUNTERS = re.compile(r'(thoughtHistoryLength\\*": )\d+')
"""How many calls the server has had: what two equal calls answer differently."""
OTHER = [
    "ping",
    "tools/list",
    "resources/list",
    "resources/templates/list",
    "prompts/list",
    "no/such/method",
]
RECORDER = """
import subprocess, sys, threading
record = open(sys.argv[1], "wb", buffering=0)
server = subprocess.Popen(sys.argv[2:], stdin=-1, stdout=-1, bufsize=0)
def copy(source, target, mark):
    for line in iter(source.readline, b""):
        record.write(mark + line)
        target.write(line); target.flush()
    target.close()
threading.Thread(target=copy, args=(sys.stdin.buffer, server.stdin, b"> "), daemon=True).start()
copy(server.stdout, sys.stdout.buffer, b"< ")
"""


@dataclass(slots=True)
class Peer:
    """One real server: how it starts, and valid calls of it that leave its state as it
    is.
    """

    name: str
    command: list[str]
    calls: list[tuple[str, dict[str, Any]]]
    version: str = ""


@dataclass(slots=True)
class Row:
    """What was measured of one server."""

    peer: Peer
    era: str = ""
    damaged: int = 0
    bare: Counter[str] = field(default_factory=Counter)
    proxied: Counter[str] = field(default_factory=Counter)
    lost: list[str] = field(default_factory=list)
    changed: int = 0
    unequal: list[str] = field(default_factory=list)


class Connection:
    """A client in plain lines: what it sent and received is kept as bytes."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, bufsize=0
        )
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.modern = False
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._number = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in iter(self.process.stdout.readline, b""):
            self.received.append(line)
            self._lines.put(line)
        self._lines.put(b"")

    def send(self, message: dict[str, Any]) -> None:
        """Send one message."""
        assert self.process.stdin
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.sent.append(line)
        self.process.stdin.write(line)

    def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its answer."""
        self._number += 1
        request_id = self._number
        params = {**(params or {}), **({"_meta": ENVELOPE} if self.modern else {})}
        self.send({"id": request_id, "method": method, "params": params})
        end = time.monotonic() + DEADLINE
        while line := self._lines.get(timeout=max(0.0, end - time.monotonic())):
            answer: dict[str, Any] = (
                json.loads(line) if line.lstrip()[:1] == b"{" else {}
            )
            if answer.get("id") == request_id and "method" not in answer:
                return answer
        raise EOFError(f"the server ended at {method}")

    def begin(self) -> None:
        """Agree on a revision: the stateless one where the server has it."""
        self.modern = True
        self.modern = "result" in self.ask("server/discover")
        if not self.modern:
            client = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "b", "version": "1"},
            }
            self.ask("initialize", client)
            self.send({"method": "notifications/initialized"})


@contextmanager
def connected(command: list[str]) -> Iterator[Connection]:
    """Start *command*, agree on a revision, and end it."""
    connection = Connection(command)
    try:
        connection.begin()
        yield connection
    finally:
        assert connection.process.stdin
        connection.process.stdin.close()
        try:
            connection.process.wait(10)
        except subprocess.TimeoutExpired:
            connection.process.kill()


def outcome(answer: dict[str, Any], expected: Any) -> str:
    """Say what became of a call: success, wrong (run with another result), error (the
    model sees it), or lost.
    """
    if "error" in answer:
        return "protocol error"
    result = answer["result"]
    if result.get("isError"):
        return (
            "refused"
            if "Not run:" in json.dumps(result.get("content"))
            else "tool error"
        )
    return "success" if content(answer) == expected else "wrong"


def content(answer: dict[str, Any]) -> Any:
    """Return what a result says, without what differs between two equal calls."""
    result = answer.get("result", {})
    kept = {
        key: value
        for key, value in result.items()
        if key not in ("_meta", "ttlMs", "resultType", "cacheScope")
    }
    return json.loads(COUNTERS.sub(r"\g<1>0", json.dumps(kept)))


def damaged(
    tool: str, arguments: dict[str, Any], schema: dict[str, Any]
) -> Iterator[tuple[str, str, Any]]:
    """Yield damaged forms of a call: what was done, the name and the arguments to
    send.
    """
    yield "arguments as text", tool, json.dumps(arguments)
    yield "wrapper object", tool, {"arguments": arguments}
    yield "name in other case", tool.replace("-", "_").upper(), arguments
    yield "name with a prefix", f"mcp__server__{tool}", arguments
    properties = schema.get("properties", {})
    for key, value in arguments.items():
        kinds = properties.get(key, {}).get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        rest = {name: each for name, each in arguments.items() if name != key}
        if key.title().replace("_", "") != key and key in schema.get("required", ()):
            yield "key in other case", tool, {**rest, key.title(): value}
        if isinstance(value, bool) and "string" not in kinds:
            yield "boolean as text", tool, {**rest, key: str(value)}
        elif (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and "string" not in kinds
        ):
            yield "number as text", tool, {**rest, key: str(value)}
            yield "number with a word", tool, {**rest, key: f"{value} items"}
        elif isinstance(value, list | dict):
            yield "container as JSON text", tool, {**rest, key: json.dumps(value)}
            yield "container as Python text", tool, {**rest, key: repr(value)}
            if isinstance(value, list) and len(value) == 1:
                yield "item without its array", tool, {**rest, key: value[0]}
        elif isinstance(value, str) and value.isdigit() and str(int(value)) == value:
            yield "text as number", tool, {**rest, key: int(value)}
        if "enum" in properties.get(key, {}):
            yield (
                "enum in other case",
                tool,
                {**rest, key: value.lower().replace(" ", "-")},
            )
        if key in schema.get("required", ()):
            yield "missing", tool, rest
        else:
            yield "key with a dash", tool, {**rest, f"{key}-": value}
    for key, part in properties.items():
        if (
            key not in arguments
            and key not in schema.get("required", ())
            and part.get("type") != "null"
        ):
            yield "null for an optional", tool, {**arguments, key: None}
            if "integer" in str(part.get("type")) or "number" in str(part.get("type")):
                yield "text for an optional number", tool, {**arguments, key: "null"}


def fits(arguments: Any, schema: dict[str, Any]) -> bool:
    """Whether a call is valid by the reference implementation of JSON Schema."""
    return bool(
        jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(
            schema
        ).is_valid(arguments)
    )


CURES_NOTHING = frozenset({"missing", "number with a word"})
"""What must be refused: no repair knows the value."""


def measure(peer: Peer, directory: Path) -> Row:
    """Run all calls bare and through the proxy."""
    row = Row(peer)
    record = directory / f"{peer.name}.record"
    recorded = [sys.executable, "-c", RECORDER, str(record), *peer.command]
    with (
        connected(peer.command) as bare,
        connected([*PROXY, "--", *recorded]) as proxied,
    ):
        row.era = "2026-07-28" if proxied.modern else "handshake"
        for method in OTHER:
            proxied.ask(method)
        tools = {
            each["name"]: each for each in bare.ask("tools/list")["result"]["tools"]
        }
        still_valid: list[dict[str, Any]] = []
        for tool, arguments in peer.calls:
            expected = content(
                bare.ask("tools/call", {"name": tool, "arguments": arguments})
            )
            through = proxied.ask("tools/call", {"name": tool, "arguments": arguments})
            assert not expected.get("isError"), (tool, expected)
            row.changed += outcome(through, expected) != "success"
            row.changed += b"> " + proxied.sent[-1] not in record.read_bytes()
            for how, name, sent in damaged(tool, arguments, tools[tool]["inputSchema"]):
                params = {"name": name, "arguments": sent}
                if name == tool and fits(sent, tools[tool]["inputSchema"]):
                    still_valid.append(
                        params
                    )  # the schema is open, and the server runs the call in its own way
                    continue
                row.damaged += 1
                alone = outcome(bare.ask("tools/call", params), expected)
                behind = outcome(proxied.ask("tools/call", params), expected)
                row.bare[alone] += 1
                row.proxied[behind] += 1
                if how in CURES_NOTHING and behind == "success" and alone != "success":
                    row.lost.append(f"{tool}: {how} was invented")
                if alone == "success" and behind != "success":
                    row.lost.append(
                        f"{tool}: {how} succeeds bare, {behind} behind the proxy"
                    )
                if behind == "wrong":
                    row.lost.append(
                        f"{tool}: {how} gives another result ({alone} bare): "
                        f"{json.dumps(sent)[:80]}"
                    )
        for params in still_valid:
            proxied.ask("tools/call", params)
            row.changed += b"> " + proxied.sent[-1] not in record.read_bytes()
    row.unequal = unequal(proxied, record.read_bytes().splitlines(keepends=True))
    return row


def unequal(client: Connection, record: list[bytes]) -> list[str]:
    """Return the messages other than calls and their answers that differ between the
    two sides of the proxy.
    """

    def others(lines: list[bytes], calls: set[Any]) -> list[bytes]:
        return [
            line
            for line in lines
            if b'"tools/call"' not in line and json.loads(line).get("id") not in calls
        ]

    calls = {json.loads(line)["id"] for line in client.sent if b'"tools/call"' in line}
    own = {
        json.loads(line[2:]).get("id")
        for line in record
        if line.startswith(b"> ")
        and line[2:] not in client.sent
        and b'"tools/list"' in line
    }
    sides = (
        (
            "to the server",
            client.sent,
            [line[2:] for line in record if line.startswith(b"> ")],
        ),
        (
            "to the client",
            client.received,
            [line[2:] for line in record if line.startswith(b"< ")],
        ),
    )
    found = []
    for side, ours, theirs in sides:
        ours, theirs = others(ours, calls), others(theirs, calls | own)
        if ours != theirs:
            found.append(f"{side}: {len(ours)} and {len(theirs)} messages")
    return found


def install(directory: Path) -> list[Peer]:
    """Install the servers, and return them with the calls that are made of them."""
    npm, files = directory / "npm", directory / "files"
    names = [f"@modelcontextprotocol/server-{name}" for name in NPM]
    if not (npm / "node_modules").exists():
        subprocess.run(
            [
                "npm",
                "install",
                "--no-audit",
                "--no-fund",
                "--silent",
                "--prefix",
                npm,
                *names,
            ],
            check=True,
        )
    for environment, packages in PYPI.items():
        place = directory / environment
        if not (place / "ready").exists():
            subprocess.run([sys.executable, "-m", "venv", place], check=True)
            subprocess.run(
                [place / "bin/pip", "install", "--quiet", *packages],
                check=True,
                stderr=subprocess.DEVNULL,
            )
            (place / "ready").touch()
    files.mkdir(exist_ok=True)
    (files / "a.txt").write_text("one\ntwo\nthree\n")
    (files / "b.txt").write_text("four\n")
    repository = files / "repository"
    if not repository.exists():
        git = [
            "git",
            "-C",
            str(repository),
            "-c",
            "user.name=b",
            "-c",
            "user.email=b@example.org",
        ]
        subprocess.run(["git", "init", "--quiet", repository], check=True)
        for number in range(3):
            (repository / "n").write_text(str(number))
            subprocess.run([*git, "add", "n"], check=True)
            subprocess.run([*git, "commit", "--quiet", "-m", f"c{number}"], check=True)
    modules = npm / "node_modules/@modelcontextprotocol"

    def node(name: str, *arguments: str) -> list[str]:
        return ["node", str(modules / f"server-{name}/dist/index.js"), *arguments]

    def python(environment: str, name: str, *arguments: str) -> list[str]:
        return [str(directory / environment / "bin" / name), *arguments]

    text, both, repo = (
        str(files / "a.txt"),
        [str(files / "a.txt"), str(files / "b.txt")],
        str(repository),
    )
    thought = {
        "thought": "so",
        "nextThoughtNeeded": False,
        "thoughtNumber": 1,
        "totalThoughts": 1,
    }
    zones = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    peers = [
        Peer(
            "everything",
            node("everything"),
            [
                ("echo", {"message": "00713"}),
                ("get-sum", {"a": 2, "b": 40}),
                ("get-structured-content", {"location": "New York"}),
                ("get-resource-links", {"count": 2}),
            ],
        ),
        Peer(
            "memory",
            node("memory"),
            [
                ("delete_entities", {"entityNames": ["nothing"]}),
                ("open_nodes", {"names": ["42"]}),
                ("search_nodes", {"query": "42"}),
                (
                    "delete_relations",
                    {"relations": [{"from": "a", "to": "b", "relationType": "c"}]},
                ),
            ],
        ),
        Peer(
            "filesystem",
            node("filesystem", str(files)),
            [
                ("read_text_file", {"path": text, "head": 2}),
                ("read_multiple_files", {"paths": both}),
                ("list_directory_with_sizes", {"path": str(files), "sortBy": "size"}),
                (
                    "search_files",
                    {"path": str(files), "pattern": "*.txt", "excludePatterns": ["b*"]},
                ),
                (
                    "edit_file",
                    {
                        "path": text,
                        "edits": [{"oldText": "two", "newText": "2"}],
                        "dryRun": True,
                    },
                ),
            ],
        ),
        Peer(
            "sequential-thinking",
            node("sequential-thinking"),
            [("sequentialthinking", thought)],
        ),
        Peer(
            "sheet-music",
            node("sheet-music", "--stdio"),
            [("play-sheet-music", {"abcNotation": "X:1\nK:C\nC"})],
        ),
        Peer("time", python("modern", "mcp-server-time"), [("convert_time", zones)]),
        Peer(
            "git",
            python("modern", "mcp-server-git"),
            [
                ("git_log", {"repo_path": repo, "max_count": 2}),
                (
                    "git_diff",
                    {"repo_path": repo, "target": "HEAD~1", "context_lines": 1},
                ),
                ("git_branch", {"repo_path": repo, "branch_type": "local"}),
            ],
        ),
        Peer(
            "fetch",
            python(
                "modern",
                "mcp-server-fetch",
                "--ignore-robots-txt",
                "--allow-private-ips",
            ),
            [("fetch", {"url": page_url(files), "max_length": 4, "raw": True})],
        ),
        Peer(
            "calculator",
            python("handshake", "mcp-server-calculator"),
            [("calculate", {"expression": "6*7"})],
        ),
        Peer(
            "sqlite",
            python(
                "handshake", "mcp-server-sqlite", "--db-path", str(directory / "x.db")
            ),
            [("read_query", {"query": "SELECT 7"})],
        ),
        Peer(
            "text-editor",
            python("handshake", "mcp-text-editor"),
            [
                (
                    "get_text_file_contents",
                    {
                        "files": [
                            {"file_path": text, "ranges": [{"start": 1, "end": 2}]}
                        ]
                    },
                )
            ],
        ),
    ]
    for peer in peers:
        peer.version = version_of(peer, modules)
    return peers


def page_url(directory: Path) -> str:
    """Serve *directory* on this machine, for the server that fetches pages; return the
    address of a page.
    """
    handler = partial(QuietHandler, directory=str(directory))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/a.txt"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the base names it so
        return


def version_of(peer: Peer, modules: Path) -> str:
    """Return the version that is installed."""
    manifest = modules / f"server-{peer.name}/package.json"
    if manifest.exists():
        return str(json.loads(manifest.read_text())["version"])
    place = Path(peer.command[0]).parents[1]
    found = sorted(
        place.glob(
            f"lib/*/site-packages/mcp_*{peer.name.replace('-', '_')}-*.dist-info"
        )
    )
    return found[0].name.removesuffix(".dist-info").rpartition("-")[2] if found else "?"


def measure_costs() -> None:
    """Print what the proxy adds: time and CPU a call, CPU a megabyte, and its start."""
    from skillruntime.adapters.mcp_proxy.session import Session

    schema = {
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": {"type": "string"},
            "head": {"type": "integer"},
            "names": {"type": "array", "items": {"type": "string"}},
            "dry": {"type": "boolean"},
        },
    }
    session = Session(initialized=True)
    session.from_client(b'{"jsonrpc":"2.0","id":"l","method":"tools/list"}')
    page = json.dumps(
        {
            "jsonrpc": "2.0",
            "id": "l",
            "result": {"tools": [{"name": "t", "inputSchema": schema}]},
        }
    )
    session.from_server(page.encode())
    kinds = {
        "valid": {"path": "/tmp/a", "head": 5, "names": ["a", "b"], "dry": True},
        "repaired": {
            "path": "/tmp/a",
            "head": "5",
            "names": "['a', 'b']",
            "dry": "true",
        },
        "refused": {"head": "many", "names": 5},
    }
    print("CPU that the proxy adds to one call and its answer, in milliseconds\n")
    print(f"{'':12}{'p50':>8}{'p99':>8}")
    for kind, arguments in kinds.items():
        times = []
        for number in range(2000):
            params = {"name": "t", "arguments": arguments}
            call = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": params,
                }
            ).encode()
            answer = (
                b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"ok"}]}}'
                % number
            )
            start = time.thread_time()
            session.from_client(call)
            session.from_server(answer)
            times.append((time.thread_time() - start) * 1e3)
        print(
            f"{kind:12}{statistics.median(times):8.3f}{statistics.quantiles(times, n=100)[98]:8.3f}"
        )
    print("\nCPU a megabyte of one message, in milliseconds\n")
    rows = json.dumps([{"id": n, "name": f"row {n}"} for n in range(30_000)])
    for label, text in (("text", "x" * 1_000_000), ("escaped text", rows[:800_000])):
        size = len(json.dumps(text)) / 1e6
        params = {"name": "t", "arguments": {"path": text}}
        call = json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        ).encode()
        answer = json.dumps(
            {
                "jsonrpc": "2.0",
                "id": 1,
                "result": {"content": [{"type": "text", "text": text}]},
            }
        ).encode()
        ours, theirs = [], []
        for _ in range(10):
            start = time.thread_time()
            session.from_client(call)
            middle = time.thread_time()
            session.from_server(answer)
            ours.append((middle - start) * 1e3 / size)
            theirs.append((time.thread_time() - middle) * 1e3 / size)
        print(
            f"{label:14} in a call {statistics.median(ours):.2f}, in an answer "
            f"{statistics.median(theirs):.2f}"
        )
    starts: dict[str, list[float]] = {"package": [], "contract": [], "proxy": []}
    for _ in range(9):
        for name, statement in (
            ("package", "import skillruntime.contract"),
            ("contract", "from skillruntime.contract import Contract"),
        ):
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", statement], check=True)
            starts[name].append(time.perf_counter() - start)
        start = time.perf_counter()
        with subprocess.Popen([*PROXY, "--", "cat"], stdin=-1, stdout=-1) as process:
            assert process.stdin and process.stdout
            process.stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"initialize"}\n')
            process.stdin.flush()
            process.stdout.readline()
            starts["proxy"].append(time.perf_counter() - start)
            process.stdin.close()
    package, contract, proxy = (
        statistics.median(each) * 1e3 for each in starts.values()
    )
    print(
        "\n"
        f"from the start to the first message through: {proxy:.0f} ms, "
        f"{proxy / package:.1f} x `import skillruntime.contract` ({package:.0f} ms), "
        f"{proxy / contract:.1f} x importing Contract"
    )


def main() -> None:
    """Install, measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", type=Path, help="where the servers are installed")
    parser.add_argument("--only", help="one server, by name")
    options = parser.parse_args()
    directory = (options.peers or Path(tempfile.mkdtemp(prefix="mcp-peers-"))).resolve()
    directory.mkdir(parents=True, exist_ok=True)
    os.environ["MEMORY_FILE_PATH"] = str(directory / "memory.jsonl")
    rows = [
        measure(peer, directory)
        for peer in install(directory)
        if options.only in (None, peer.name)
    ]
    print(
        f"{'server':22}{'version':>12}{'era':>12}{'damaged':>9}{'bare':>12}"
        f"{'behind':>12}{'wrong':>14}{'refused':>9}\n"
    )
    for row in rows:
        wrong = f"{row.bare['wrong']} -> {row.proxied['wrong']}"
        print(
            f"{row.peer.name:22}{row.peer.version:>12}{row.era:>12}{row.damaged:>9}"
            f"{row.bare['success']:>12}{row.proxied['success']:>12}{wrong:>14}"
            f"{row.proxied['refused']:>9}"
        )
    total = sum(row.damaged for row in rows)
    bare, behind = (
        sum(row.bare["success"] for row in rows),
        sum(row.proxied["success"] for row in rows),
    )
    print(
        "\n"
        f"{total} damaged calls: {bare / total:.0%} succeed bare, "
        f"{behind / total:.0%} behind the proxy"
    )
    print(f"valid calls changed: {sum(row.changed for row in rows)}")
    print(
        "other traffic that differs: "
        f"{[each for row in rows for each in row.unequal] or 'none'}"
    )
    for row in rows:
        for each in row.lost:
            print(f"  {row.peer.name}: {each}")
    print()
    measure_costs()


if __name__ == "__main__":
    main()
