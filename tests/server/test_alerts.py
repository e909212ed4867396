"""The alerts of docs/server.md, with a real Prometheus: each fires after its cause."""

from __future__ import annotations

import json
import logging
import re
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests import needs
from tests.server.alerted import KEY
from tests.server.parts import Metrics
from tests.server.processes import read_port

PAGE = Path(__file__).parents[2] / "docs" / "server.md"
SERVER = Path(__file__).with_name("alerted.py")
_log = logging.getLogger(__name__)
WITHIN = 300.0  # seconds until a test gives up


def alerts() -> dict[str, str]:
    """Return the rows of the page's table: the expression by the alert."""
    text = PAGE.read_text("utf-8")
    table = text.partition("| alert | expression |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| ([a-z][^|]*) \| `([^`]*)` \|", table, re.MULTILINE)
    assert len(rows) == len(table.strip().splitlines()) - 1  # the line of dashes
    return {name: expression.replace("\\|", "|") for name, expression in rows}


class Alerted:
    """The server of alerted.py, killed and started again at one port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it listens."""
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER), str(self.directory), str(self.port)],
            cwd=Path(__file__).parents[2],
            stdout=subprocess.PIPE,
        )
        self.port = read_port(self.process)

    def kill(self) -> None:
        """Kill it."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Send one request as the operator."""
        return httpx2.request(
            method,
            f"http://127.0.0.1:{self.port}{path}",
            headers={"x-api-key": KEY},
            timeout=300,
            trust_env=False,
            **options,
        )

    def invoke(self, name: str, **context: Any) -> httpx2.Response:
        """Begin an execution."""
        document: dict[str, Any] = {
            "caller": {"id": "t", "type": "service"},
            "skill_id": name,
            "inputs": {},
        }
        if context:
            document["context"] = context
        return self.ask("POST", f"/skills/{name}/invoke", json=document)

    def run(self, name: str) -> None:
        """Begin an execution, and wait until it runs."""
        execution_id = self.invoke(name).json()["execution_id"]
        until(
            lambda: (
                self.ask("GET", f"/executions/{execution_id}").json()["status"]
                == "running"
            )
        )


def until(is_true: Callable[[], bool]) -> None:
    """Ask until it is true."""
    limit = time.monotonic() + WITHIN
    while not is_true():
        assert time.monotonic() < limit, "it did not become true"
        time.sleep(0.1)


class Prometheus:
    """A real Prometheus with the page's alerts, which reads the server each second."""

    def __init__(self, directory: Path, target: int) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = int(probe.getsockname()[1])
        rules = [
            {"alert": name, "expr": expression, "for": "0s"}
            for name, expression in alerts().items()
        ]
        group = {"name": "page", "interval": "1s", "rules": rules}
        (directory / "rules.yml").write_text(json.dumps({"groups": [group]}))
        job = {
            "job_name": "skills",
            "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
            "authorization": {"credentials": KEY},
        }
        seconds = {"scrape_interval": "1s", "scrape_timeout": "1s"}
        (directory / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": seconds,
                    "rule_files": ["rules.yml"],
                    "scrape_configs": [job],
                }
            )
        )
        self._command = [
            needs.program("prometheus"),
            f"--config.file={directory / 'prometheus.yml'}",
            f"--storage.tsdb.path={directory / 'series'}",
            f"--web.listen-address=127.0.0.1:{self._port}",
            "--log.level=error",
        ]

    @contextmanager
    def running(self) -> Iterator[Prometheus]:
        """Run it, once it has read the server."""
        process = subprocess.Popen(self._command)
        try:
            until(lambda: self.value("up") == ["1"])
            yield self
        finally:
            process.kill()
            process.wait()

    def value(self, expression: str) -> list[str]:
        """Return the values of an expression; none where Prometheus does not answer."""
        try:
            answer = httpx2.get(
                f"http://127.0.0.1:{self._port}/api/v1/query",
                params={"query": expression},
                timeout=60,
                trust_env=False,
            )
        except httpx2.TransportError:
            return []
        # It says 503, in plain text, until it has read its own storage.
        if answer.status_code != 200:
            return []
        return [each["value"][1] for each in answer.json()["data"]["result"]]

    def fires(self, alert: str) -> bool:
        """Return whether an alert fires."""
        return bool(self.value(f'ALERTS{{alertname="{alert}",alertstate="firing"}}'))


def fill_the_disk(server: Alerted) -> None:
    """Let the server write nothing more."""
    assert server.process is not None
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (0, 0))


def wait_for_a_place(server: Alerted) -> None:
    """Begin two executions, of which the second waits eleven seconds for the only
    place.
    """
    server.invoke("slow")
    server.run("slow")


def die(server: Alerted, name: str = "once") -> None:
    """Kill the server while an execution runs, and start it again."""
    server.run(name)
    server.kill()
    server.start()


def hold(server: Alerted) -> None:
    """Kill the server while an execution runs that may run twice."""
    die(server, "twice")


def run_long(server: Alerted) -> None:
    """Run an execution for eleven seconds."""
    execution_id = server.invoke("slow").json()["execution_id"]
    until(
        lambda: (
            server.ask("GET", f"/executions/{execution_id}").json()["status"]
            == "completed"
        )
    )


def lose_a_message(server: Alerted) -> None:
    """Name a receiver that does not answer."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}/"
        server.invoke("quick", webhook=address)


def ask_too_often(server: Alerted) -> None:
    """Begin more executions than a caller may."""
    for _ in range(60):
        server.invoke("quick")


CAUSES: dict[str, Callable[[Alerted], Any]] = {
    "the database is away": fill_the_disk,
    "not enough capacity": wait_for_a_place,
    "servers die": die,
    "work was cut off": die,
    "work is held": hold,
    "a skill fails": lambda server: server.invoke("fails"),
    "a skill is slow": run_long,
    "a receiver is away": lose_a_message,
    "requests are refused": ask_too_often,
}


def test_every_row_of_the_page_is_an_alert_with_a_threshold() -> None:
    """And has a cause here that is tried."""
    assert alerts().keys() == CAUSES.keys()
    assert all(re.search(r" (>|==) [0-9.]+\Z", each) for each in alerts().values())


@pytest.mark.slow
@pytest.mark.processes
@needs.with_program("prometheus")
@pytest.mark.parametrize("alert", CAUSES)
def test_each_alert_fires_after_its_cause_and_not_before(
    alert: str, tmp_path: Path
) -> None:
    """With scrapes of one second, and no waiting before it fires."""
    server = Alerted(tmp_path)
    server.start()
    try:
        with Prometheus(tmp_path, server.port).running() as prometheus:
            until(
                lambda: prometheus.value("count(skillruntime_takeovers_total)") == ["1"]
            )
            fired_before = prometheus.fires(alert)
            CAUSES[alert](server)
            caused = time.monotonic()
            until(lambda: prometheus.fires(alert))
            # --log-cli-level=INFO shows it.
            _log.info("fired after %.1f s", time.monotonic() - caused)
    finally:
        server.kill()

    assert not fired_before


def test_what_a_dead_server_left_is_counted_once_zero_was_read() -> None:
    """A server counts it before Prometheus has read anything of it, and a series that
    is born at 1 has no increase.
    """
    metrics = Metrics()

    metrics.count_takeover()
    read = [metrics.to_text({}) for _ in range(2)]

    assert [
        [
            line
            for line in text.splitlines()
            if line.startswith("skillruntime_takeovers_total ")
        ]
        for text in read
    ] == [["skillruntime_takeovers_total 0.0"], ["skillruntime_takeovers_total 1.0"]]


def test_the_series_that_alerts_name_are_there_from_the_start() -> None:
    """Of each skill with each code, and of each address with each refusal."""
    metrics = Metrics()

    metrics.announce(["echo"], [("POST", "invoke")])
    lines = metrics.to_text({}).splitlines()

    ended = "skillruntime_executions_ended_total"
    for code in ("EXECUTION_INTERRUPTED", "EXECUTION_HELD", "INTERNAL_ERROR", "other"):
        assert f'{ended}{{code="{code}",skill="echo",status="failed"}} 0.0' in lines
    for status in ("429", "503"):
        series = f'{{method="POST",route="invoke",status="{status}"}}'
        assert f"skillruntime_requests_total{series} 0.0" in lines
    assert 'skillruntime_execution_seconds_count{skill="echo"} 0.0' in lines
