"""Serve the translator of the descriptor document in one process, and call it from an
agent in another.

    python examples/translator/run.py

In the middle of the translation the server is killed and restarted. The agent does not
notice.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from skillruntime.remote import variable_for

HERE = Path(__file__).parent
SKILL = "com.example.translate-v1"


def main() -> int:
    """Run the example."""
    with tempfile.TemporaryDirectory() as directory:
        return play(Path(directory))


def play(directory: Path) -> int:
    """Start the server, let the agent call it, kill and restart the server during the
    call, and show the agent's answer.
    """
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    key = run_cli("serve", "--data", str(directory), "--new-key", "agent").strip()
    server = start_server(port, directory)
    agent = None
    try:
        print(f"serving {SKILL} at {url}")
        describe(directory / "skills" / "translate", ask(url, f"/skills/{SKILL}"))
        environment = {
            **os.environ,
            variable_for(url): key,
            "PYTHONPATH": str(HERE.parents[1]),
        }
        agent = subprocess.Popen(
            [sys.executable, str(HERE / "agent.py"), str(directory / "skills")],
            stdout=subprocess.PIPE,
            env=environment,
        )
        execution = wait_until_running(url, key)
        server.send_signal(signal.SIGKILL)
        server.wait()
        print(f"killed the server (kill -9) while {execution} ran")
        server = start_server(port, directory)
        print("started it again")
        output, _ = agent.communicate(timeout=300)
        received = json.loads(output)
        listed = ask(url, "/executions", key)["executions"]
    finally:
        for process in (server, agent):
            if process is not None:
                process.kill()
                process.wait()
    envelope = received["envelope"]
    print(
        f"the agent received: {envelope['status']}, "
        f"{envelope['data']['translated_text'][:60]}..."
    )
    print(f"the word list knew {envelope['data']['confidence']:.0%} of the words")
    print(
        "executions on the server: "
        f"{[(each['execution_id'], each['status']) for each in listed]}"
    )
    is_well = envelope["status"] == "success" and [
        each["execution_id"] for each in listed
    ] == [execution]
    return 0 if is_well else 1


def start_server(port: int, directory: Path) -> subprocess.Popen[bytes]:
    """Start the server and wait until it listens."""
    command = cli(
        "serve",
        "-s",
        str(HERE / "skills"),
        "--trust",
        "--port",
        str(port),
        "--data",
        str(directory),
        "translate",
    )
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            ask(f"http://127.0.0.1:{port}", "/health")
            return server
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("the server did not start")


def describe(skill: Path, descriptor: dict[str, Any]) -> None:
    """Write the skill in the form that an agent needs: its SKILL.md and the descriptor
    that the server publishes.
    """
    skill.mkdir(parents=True)
    shutil.copy(HERE / "skills" / "translate" / "SKILL.md", skill)
    (skill / "descriptor.json").write_text(
        json.dumps(descriptor, ensure_ascii=False), encoding="utf-8"
    )


def wait_until_running(url: str, key: str) -> str:
    """Wait until the agent's execution runs, and return its id."""
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        for each in ask(url, "/executions", key)["executions"]:
            if each["status"] == "running":
                return str(each["execution_id"])
        time.sleep(0.01)
    raise RuntimeError("nothing ran")


def ask(url: str, path: str, key: str = "") -> Any:
    """Return the JSON document at *path*."""
    request = urllib.request.Request(
        url + path, headers={"X-API-Key": key} if key else {}
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def cli(*arguments: str) -> list[str]:
    """Return the command line that runs skillruntime in this interpreter."""
    return [sys.executable, "-m", "skillruntime", *arguments]


def run_cli(*arguments: str) -> str:
    """Run a command and return its output."""
    return subprocess.run(
        cli(*arguments), capture_output=True, text=True, check=True
    ).stdout


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    sys.exit(main())
