"""The files of deploy/: parsed, and compared with the options of the server. No
container is run here.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import click
import pytest
import yaml

from skillruntime.cli.serve import command
from tests import needs

DEPLOY = Path(__file__).parents[2] / "deploy"
VARIABLES = {
    str(each.envvar) for each in command.params if isinstance(each, click.Option)
}


@pytest.mark.parametrize("name", sorted(each.name for each in DEPLOY.iterdir()))
def test_every_variable_is_an_option_of_the_server(name: str) -> None:
    """A name that the server does not read would be a setting without effect."""
    named = set(re.findall(r"SKILLRUNTIME_[A-Z_]+", (DEPLOY / name).read_text("utf-8")))

    assert named <= VARIABLES


def test_two_servers_share_a_database_behind_a_proxy() -> None:
    """Both wait for the database, and have longer to stop than what runs has to end."""
    document = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    services = document["services"]

    assert set(services) == {"server-1", "server-2", "database", "caddy"}
    assert services["server-1"] == services["server-2"]
    assert services["server-1"]["depends_on"] == {
        "database": {"condition": "service_healthy"}
    }
    assert services["server-1"]["stop_grace_period"] == "45s"
    # Caddy's address is the one whose X-Forwarded-For is believed.
    assert services["caddy"]["networks"]["default"]["ipv4_address"] == "172.30.0.10"
    assert (
        services["server-1"]["environment"]["SKILLRUNTIME_TRUSTED_PROXY"]
        == "172.30.0.10"
    )
    assert "server-1:8400 server-2:8400" in (DEPLOY / "Caddyfile").read_text("utf-8")


def test_a_pod_is_asked_whether_it_is_ready() -> None:
    """And is not ended while the database is away: /health answers."""
    documents = list(
        yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8"))
    )
    [container] = documents[0]["spec"]["template"]["spec"]["containers"]

    assert [each["kind"] for each in documents] == [
        "Deployment",
        "Service",
        "PodDisruptionBudget",
    ]
    assert container["readinessProbe"]["httpGet"]["path"] == "/ready"
    assert container["livenessProbe"]["httpGet"]["path"] == "/health"


@pytest.mark.processes
def test_the_unit_is_one_that_systemd_reads() -> None:
    """Checked by systemd where it is installed; it need not run."""
    needs.program("systemd-analyze")
    result = subprocess.run(
        ["systemd-analyze", "verify", DEPLOY / "skillruntime.service"],
        capture_output=True,
        text=True,
        timeout=60,
    )

    said = [
        line for line in result.stderr.splitlines() if "skillruntime.service" in line
    ]
    # The program is not installed where the unit says.
    assert [
        line
        for line in said
        if "is not executable" not in line and "Failed to create" not in line
    ] == []
