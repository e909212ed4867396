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


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "skillruntime.service"])
def test_every_server_says_how_to_make_its_key(name: str) -> None:
    """Others reach it: without a key it does not start."""
    head = [
        line
        for line in (DEPLOY / name).read_text("utf-8").splitlines()
        if line.startswith("#")
    ]

    assert any("--new-key ann" in line for line in head)


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


def test_one_dockerfile_has_the_server_and_the_command_line() -> None:
    """A build without a target makes the last stage, which is the server."""
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    stages = re.findall(r"^FROM \S+ AS (\w+)$", text, re.MULTILINE)
    entries = re.findall(r"^ENTRYPOINT (.*)$", text, re.MULTILINE)
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))

    assert stages == ["base", "cli", "server"]
    assert entries == ['["skillruntime"]', '["skillruntime", "serve"]']
    assert compose["services"]["server-1"]["build"]["target"] == "server"


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
