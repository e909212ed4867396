"""Command lines in a skill's text, checked against its scripts: `skillruntime/derive/documented_calls.py`."""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, check_documented_calls, derive, find_documented_calls, with_examples

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


MERGE = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("inputs", nargs="+")
parser.add_argument("output")
parser.parse_args()
"""
PASSES_ON = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--x", required=True)
parser.parse_known_args()
"""
DEPLOY = """#!/bin/bash
[ -z "$1" ] && { echo "Usage: deploy.sh <env> [tag]"; exit 1; }
ENV="$1"; TAG="${2:-latest}"
echo "$ENV $TAG"
"""
SCRIPTS = {
    "scripts/top.py": TOP,
    "scripts/jobs.py": JOBS,
    "scripts/merge.py": MERGE,
    "scripts/part.py": PASSES_ON,
    "scripts/deploy.sh": DEPLOY,
}


def derivations() -> dict[str, Derivation]:
    """Return what is derived of each script, by its path."""
    read = {path: derive(source, path=path) for path, source in SCRIPTS.items()}
    return {path: each for path, each in read.items() if each is not None}


def faults(*lines: str) -> list[tuple[str, str, int, int]]:
    """Return what is wrong with these lines of a code block."""
    text = "# Skill\n\n```bash\n" + "\n".join(lines) + "\n```\n"
    return [
        (each.kind, each.message, each.line, each.column)
        for each in check_documented_calls(text, derivations(), skill="me")
    ]


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
        "python scripts/top.py a.txt \\  # the file\n  --limit 3",
        "python scripts/merge.py a.pdf b.pdf out.pdf",
        "python scripts/part.py --x 1 --passed-on 3",
        "cd scripts && python top.py a.txt",
        "cd other && python top.py --nope",
        "python ../other/scripts/top.py --nope",
        "python ~/.claude/skills/other/scripts/top.py --nope",
        'for f in *.txt; do python scripts/top.py "$f" --format json; done',
        "OUT=$(python scripts/top.py a.txt --format json | jq .x)",
        "python scripts/top.py a.txt --format json|text",
        "python scripts/top.py a.txt --format json/text",
        "python scripts/top.py $ARGS",
        "python scripts/top.py a.txt > out.txt 2>&1",
        "cat > notes.txt <<'END'\npython scripts/top.py --nope\nEND",
        "python scripts/top.py a.txt <<END\n--nope\nEND",
        "python scripts/top.py a.txt # --nope",
        "cat scripts/top.py --nope",
        "chmod +x scripts/deploy.sh",
        "pytest scripts/top.py --nope",
        "python other.py scripts/top.py --nope",
        "python -m pytest scripts/top.py --nope",
        "python -c 'import x' scripts/top.py --nope",
        "docker run image python scripts/top.py --nope",
        'echo "python scripts/top.py --nope"',
        "scripts/deploy.sh prod",
        "conda run -n env python scripts/top.py a.txt -n5",
        "uv run --with requests scripts/top.py a.txt",
        "python scripts/top.py -- -odd-name",
        "it doesn't matter: python scripts/top.py --nope",
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


@pytest.mark.parametrize(
    ("line", "column"),
    [
        ("cd scripts && python top.py a.txt --nope", 35),
        ("$ python scripts/top.py a.txt --nope", 31),
        ("!python scripts/top.py a.txt --nope", 30),
        ("python -m scripts.top a.txt --nope", 29),
        ("OUT=$(python scripts/top.py a.txt --nope)", 35),
        ("for f in *; do python scripts/top.py $f --nope; done", 41),
        ("cat x | python scripts/top.py a.txt --nope", 37),
        ("python ${ROOT}/skills/me/scripts/top.py a.txt --nope", 47),
        ("python {baseDir}/scripts/top.py a.txt --nope", 39),
        ("uv run scripts/top.py a.txt --nope", 29),
        ("./scripts/top.py a.txt --nope", 24),
    ],
)
def test_a_call_is_found_however_it_is_written(line: str, column: int) -> None:
    """Prompts, loops, substitutions, pipes, modules and paths through the skill's directory."""
    assert faults(line) == [("unknown-flag", "scripts/top.py has no --nope", 4, column)]


def test_a_fault_on_a_continued_line_has_the_place_of_its_word() -> None:
    """An editor jumps to the flag, and not to the start of the command; blocks in lists count too."""
    text = "1. Run\n\n   ```bash\n   python scripts/top.py a.txt \\\n     --limit 3 --nope\n   ```\n"

    found = check_documented_calls(text, derivations())

    assert [(each.message, each.line, each.column) for each in found] == [("scripts/top.py has no --nope", 5, 16)]


def test_the_last_positional_gets_its_word_before_a_list() -> None:
    """``inputs...  output``: a single word is an input, and the output is what is missing."""
    assert faults("python scripts/merge.py a.pdf") == [
        ("missing-argument", "output is required, and the call does not give it", 4, 8)
    ]


def test_calls_that_fit_become_examples_of_the_tool() -> None:
    """With the types of the contract; calls with placeholders and calls that do not fit are left out."""
    text = """
```bash
python scripts/top.py report.txt -n 5 --format json
python scripts/top.py <file> --limit 3
python scripts/top.py a.txt --limit many
python scripts/jobs.py start --name nightly
bash scripts/deploy.sh prod v2
```
"""

    found = with_examples(derivations(), text)

    examples = {path: each.document["input"].get("examples") for path, each in found.items()}
    assert examples == {
        "scripts/top.py": [{"file": "report.txt", "limit": 5, "format": "json"}],
        "scripts/jobs.py": [{"command": "start", "name": "nightly"}],
        "scripts/merge.py": None,
        "scripts/part.py": None,
        "scripts/deploy.sh": [{"env": "prod", "tag": "v2"}],
    }
    properties = found["scripts/deploy.sh"].document["input"]["properties"]
    assert properties["env"] == {"type": "string", "description": "For example prod"}
