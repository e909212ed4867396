"""The commands of docs/remote.md, sent by curl to a server in another process."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.server.processes import address_of
from tests.skill_files import write_skill_files

pytest.importorskip("starlette", reason=needs.to_install("starlette"))

pytestmark = [pytest.mark.processes, needs.with_program("curl")]

PAGE = Path(__file__).parents[2] / "docs" / "remote.md"
COUNTING = """
import json, sys
print(json.dumps({"words": len(json.load(sys.stdin)["text"].split())}))
"""
CONTRACT = {
    "input": {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    },
    "run": {"script": "scripts/count.py"},
}

ENDED = 409
"""The answer to a request that has no meaning for an execution that has ended."""


def commands_of_the_page() -> list[str]:
    text = PAGE.read_text("utf-8")
    block = re.search(r"```sh\n(curl .*?)```", text, re.DOTALL)
    assert block is not None
    return block[1].splitlines()


def expected_status(command: str) -> int:
    if "-X DELETE" in command:
        return 200
    if re.search(r"/(complete|release|leave)\b", command):
        return ENDED
    return 200


def test_each_command_of_the_page_is_answered(tmp_path: Path) -> None:
    """In their order: the invocation begins the execution that the others name."""
    contract = json.dumps(CONTRACT)
    files = {"scripts/count.py": COUNTING, "contract.json": contract}
    write_skill_files(tmp_path / "skills", "word-count", "Counts words", files)
    start = [sys.executable, "-m", "skillruntime", "serve"]
    new_key = subprocess.run(
        [*start, "--new-key", "ann", "--operator"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    environment = {**os.environ, "KEY": new_key.stdout.strip(), "ID": ""}
    server = subprocess.Popen(
        [*start, "-s", "skills", "--trust", "--port", "0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    answers = {}
    try:
        environment["URL"] = address_of(server)
        for command in commands_of_the_page():
            ran = subprocess.run(
                ["sh", "-c", f"{command} -s -w '\n%{{http_code}}'"],
                env=environment,
                capture_output=True,
                text=True,
                check=True,
            )
            body, _, status = ran.stdout.rpartition("\n")
            answers[command] = int(status)
            if "/invoke" in command:
                begun = json.loads(body)
                assert begun["output"] == {"words": 2}
                environment["ID"] = begun["execution_id"]
    finally:
        server.kill()
        server.communicate()

    assert answers == {command: expected_status(command) for command in answers}
    assert len(answers) == 14
