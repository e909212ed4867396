"""Node scripts that read ``process.argv`` by hand: each is run on the words of its contract."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, Derivation, derive, to_argv
from skillruntime.errors import SkillInputError

USAGE = (
    "/** Join two files. */\nconst args = process.argv.slice(2);\nif (args.length < 2) {\n"
    "  console.error('Usage: node join.js <left> <right> [times]');\n  process.exit(1);\n}\n"
    "const left = args[0];\nconst right = args[1];\nconst times = parseInt(args[2] || '1', 10);\n"
    "console.log(left, right, times);\n"
)
PATTERN = (
    "const [, , file, mode = 'fast', ...rest] = process.argv;\n"
    "if (!file) {\n  console.log(`Usage: x.mjs <file> [mode]`);\n  process.exit(1);\n}\n"
    "console.log(file, mode, rest.join('+'));\n"
)
FLAGS = (
    "const args = process.argv.slice(2);\nconst at = args.indexOf('--out');\n"
    "const out = at !== -1 ? args[at + 1] : 'out.txt';\nconst quiet = args.includes('--quiet');\n"
    "console.log(out, quiet);\n"
)
SWITCH = (
    "const command = process.argv[2];\nconst start = (name) => {\n"
    "  if (!name) {\n    console.error('a name is required');\n    process.exit(1);\n  }\n"
    "  console.log('start', name);\n};\n"
    "switch (command) {\n  case 'start':\n    start(process.argv[3]);\n    break;\n  case 'stop':\n"
    "    console.log('stop');\n    break;\n  default:\n    console.error('Usage: x.js start|stop');\n"
    "    process.exit(1);\n}\n"
)
EACH = (
    "async function main() {\n  const files = process.argv.slice(2);\n"
    "  if (!files.length) throw new Error('no files');\n  for (const file of files) {\n    console.log(file);\n  }\n}\n"
    "main().catch((error) => {\n  console.error(error.message);\n  process.exit(1);\n});\n"
)
CALLS: list[tuple[str, dict[str, Any], str]] = [
    (USAGE, {"left": "a", "right": "-b"}, "a -b 1"),
    (USAGE, {"left": "a", "right": "b", "times": 3}, "a b 3"),
    (PATTERN, {"file": "a b"}, "a b fast "),
    (PATTERN, {"file": "a", "mode": "slow", "rest": ["x", "y"]}, "a slow x+y"),
    (FLAGS, {}, "out.txt false"),
    (FLAGS, {"out": "b.txt", "quiet": True}, "b.txt true"),
    (SWITCH, {"command": "start", "name": "it"}, "start it"),
    (SWITCH, {"command": "stop"}, "stop"),
    (EACH, {"files": ["a", "-b"]}, "a\n-b"),
]
REFUSED: list[tuple[str, dict[str, Any]]] = [
    (USAGE, {"left": "a"}),
    (PATTERN, {}),
    (SWITCH, {"command": "start"}),
    (SWITCH, {"command": "restart"}),
    (EACH, {"files": []}),
]


def derived(source: str) -> Derivation:
    """Return what is read of *source*."""
    derivation = derive(source, path="script.mjs")
    assert derivation is not None
    assert derivation.complete, derivation.unread
    return derivation


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
@pytest.mark.parametrize(("source", "arguments", "expected"), CALLS)
def test_the_script_gets_back_what_was_asked(
    source: str, arguments: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """What is accepted reaches the script in its position."""
    (tmp_path / "script.mjs").write_text(source)
    derivation = derived(source)
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    words = to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted)

    done = subprocess.run(
        ["node", "script.mjs", *words], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
    )

    assert done.stdout.rstrip("\n") == expected.rstrip("\n")


@pytest.mark.parametrize(("source", "arguments"), REFUSED)
def test_what_the_script_would_refuse_is_refused_before_it_runs(source: str, arguments: dict[str, Any]) -> None:
    """A missing word, or one that its ``switch`` does not know."""
    with pytest.raises(SkillInputError):
        derived(source).to_contract().accept(arguments, policy="strict")


def test_a_function_of_its_own_named_parse_args_is_not_the_one_of_node() -> None:
    """It is followed like any other function, and ``util`` may be imported for something else."""
    source = (
        "const util = require('util');\nfunction parseArgs(argv) {\n  const found = {};\n"
        "  for (let i = 0; i < argv.length; i++) {\n    if (argv[i] === '--out') found.out = argv[++i];\n"
        "    else found.file = argv[i];\n  }\n  return found;\n}\nconst found = parseArgs(process.argv.slice(2));\n"
    )
    derivation = derive(source, path="script.js")

    assert derivation is not None
    assert derivation.framework == "process.argv"
    assert list(derivation.document["input"]["properties"]) == ["out", "file"]
