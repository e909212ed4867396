"""Command lines in a skill's text, checked against its scripts: `skillruntime/derive/documented_calls.py`."""

from __future__ import annotations

import pytest

from skillruntime.derive import derive
from skillruntime.derive.documented_calls import check_documented_calls, find_documented_calls

TOP = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("file")
parser.add_argument("-n", "--limit", type=int)
parser.add_argument("--format", choices=["json", "text"])
parser.add_argument("--verbose", "-v", action="store_true")
parser.parse_args()
"""
JOBS = """
import argparse
parser = argparse.ArgumentParser()
commands = parser.add_subparsers(dest="command", required=True)
start = commands.add_parser("start")
start.add_argument("--name", required=True)
commands.add_parser("stop")
parser.parse_args()
"""


def faults(*lines: str) -> list[tuple[str, str, int, int]]:
    """Return what is wrong with these lines of a code block."""
    found = {
        path: derivation
        for path, source in (("scripts/top.py", TOP), ("scripts/jobs.py", JOBS))
        if (derivation := derive(source, path=path)) is not None
    }
    text = "# Skill\n\n```bash\n" + "\n".join(lines) + "\n```\n"
    return [(each.kind, each.message, each.line, each.column) for each in check_documented_calls(text, found)]


@pytest.mark.parametrize(
    "line",
    [
        "python scripts/top.py a.txt --limit 3",
        "python3 ${SKILL_DIR}/scripts/top.py a.txt -n 3 -v | head",
        "./top.py --format=json <file>",
        "uv run scripts/top.py 'my file.txt' --lim 5 --format $FORMAT",
        "python scripts/top.py [--limit N] FILE",
        "python scripts/top.py --help",
        "echo see scripts/top.py --no-such",
        "python scripts/jobs.py start --name nightly && python other.py --x",
        "python scripts/jobs.py <command>",
        "python scripts/top.py a.txt \\\n  --limit 3 \\\n  --verbose",
    ],
)
def test_a_call_that_the_script_accepts_is_not_reported(line: str) -> None:
    """Aliases, abbreviations, placeholders, pipes and grammars of usage are all right."""
    assert faults(line) == []


def test_a_flag_that_does_not_exist_is_reported_with_its_place() -> None:
    """The line counts from the start of the text, the column within the line."""
    assert faults("python scripts/top.py a.txt --max 3") == [("unknown-flag", "scripts/top.py has no --max", 4, 29)]


def test_a_missing_argument_and_a_wrong_choice_are_reported() -> None:
    """A required argument of the script, or of the command that is called."""
    assert faults("python scripts/top.py --limit 3") == [
        ("missing-argument", "file is required, and the call does not give it", 4, 8)
    ]
    assert faults("python scripts/jobs.py start") == [
        ("missing-argument", "name is required, and the call does not give it", 4, 8)
    ]
    assert faults("python scripts/top.py a --format xml") == [
        ("wrong-choice", "format: 'xml' is not one of json, text", 4, 34)
    ]
    assert faults("python scripts/jobs.py restart") == [("wrong-choice", "'restart' is not one of start, stop", 4, 24)]


def test_only_shell_blocks_are_searched() -> None:
    """Prose and Python code name scripts without calling them."""
    text = "Run scripts/top.py --nothing.\n\n```python\nrun('scripts/top.py --nothing')\n```\n"

    assert find_documented_calls(text, {"scripts/top.py": None}) == []
