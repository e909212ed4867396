"""What shell scripts refuse to run without: each is run on the least call that its
contract accepts.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv
from tests import needs

pytestmark = pytest.mark.processes

LOOP = (
    'while [ $# -gt 0 ]; do\n  case "$1" in\n    --name) NAME="$2"; shift 2 ;;\n'
    '    --days) DAYS="$2"; shift 2 ;;\n    *) echo "unknown $1"; exit 2 ;;\n  esac\n'
    "done\n"
)
CASES: list[tuple[str, list[str]]] = [
    (
        'ID="$1"\n[ -z "$ID" ] && { echo "Usage: $0 <id>"; exit 1; }\necho "$ID"\n',
        ["id"],
    ),
    ('[ $# -lt 2 ] && exit 64\necho "$1 $2 $3"\n', ["argument_1", "argument_2"]),
    (
        '[ "$#" -ge 1 ] || { echo usage; exit 1; }\necho "$1" "${2:-x}"\n',
        ["argument_1"],
    ),
    ('FROM=${1:?missing}\nTO=${2:-out}\necho "$FROM $TO"\n', ["from"]),
    (
        (
            'usage() {\n  echo "usage: $1" >&2\n  exit 1\n}\nJSON="$1"\nOUT="$2"\n'
            '[ -z "$JSON" ] && usage "<json> [output]"\necho "$JSON" "${OUT:-none}"\n'
        ),
        ["json"],
    ),
    (
        (
            'if [ -z "$1" ] || [ -z "$2" ]; then\n'
            '  echo "need both"\n'
            "  exit 1\n"
            "fi\n"
            'echo "$1 $2"\n'
        ),
        ["argument_1", "argument_2"],
    ),
    (
        (
            "if [[ $# -eq 0 ]]; then\n"
            "  exit 1\n"
            "fi\n"
            'for file in "$@"; do\n'
            '  echo "$file"\n'
            "done\n"
        ),
        ["file"],
    ),
    (
        (
            f'{LOOP}if [ -z "$NAME" ]; then\n'
            '  echo "--name is required" >&2\n'
            "  exit 1\n"
            "fi\n"
            'echo "$NAME" "$DAYS"\n'
        ),
        ["name"],
    ),
    (
        f'DAYS=7\n{LOOP}[[ -n "$NAME" && -n "$DAYS" ]] || exit 1\necho "$NAME"\n',
        ["name"],
    ),
    (
        (
            ': "${HOME_DIR:=/tmp}"\n'
            f'{LOOP}: "${{NAME:?--name is required}}"\n'
            'echo "$NAME"\n'
        ),
        ["name"],
    ),
    (
        (
            'case "$1" in\n'
            "  start) echo on ;;\n"
            "  stop) echo off ;;\n"
            '  *) echo "Usage: $0 start|stop"; exit 1 ;;\n'
            "esac\n"
        ),
        ["argument_1"],
    ),
    (
        'set -euo pipefail\nTARGET="$1"\nMODE="${2:-fast}"\necho "$TARGET $MODE"\n',
        ["target"],
    ),
    ('case $# in\n  0) echo usage; exit 1 ;;\nesac\necho "$1"\n', ["argument_1"]),
    ('[ -z "$NAME" ] && NAME=world\necho "$NAME ${1:-}"\n', []),
    (
        (
            'while getopts "o:v" opt; do\n  case $opt in\n    o) OUT=$OPTARG ;;\n'
            '    v) VERBOSE=1 ;;\n  esac\ndone\ntest -n "$OUT" || exit 1\necho "$OUT"\n'
        ),
        ["out"],
    ),
    (
        (
            'while [ $# -gt 0 ]; do\n  case "$1" in\n    --root) shift; ROOT="$1" ;;\n'
            '    *) FILE="$1" ;;\n  esac\n  shift\ndone\n'
            '[ -n "$FILE" ] || { echo "no file"; exit 1; }\necho "$FILE" "$ROOT"\n'
        ),
        ["file"],
    ),
    (
        (
            'in="${1:-}"\n'
            '[ -n "$in" ] || exit 2\n'
            "shift || true\n"
            "while [ $# -gt 0 ]; do\n"
            '  case "$1" in\n'
            '    --out) out="${2:-}"; shift 2 ;;\n'
            "    *) exit 2 ;;\n"
            "  esac\n"
            "done\n"
            'echo "$in"\n'
        ),
        ["in"],
    ),
    (
        (
            f'{LOOP}if [[ "$NAME" == all && ( -n "$DAYS" || -n "$X" ) ]]; then\n'
            "  exit 1\n"
            "fi\n"
            "echo ok\n"
        ),
        [],
    ),
    (
        (
            "if [ $# -lt 2 ]; then\n"
            "  exit 1\n"
            "fi\n"
            "TO=$1\n"
            "shift\n"
            'for f in "$@"; do\n'
            '  echo "$f $TO"\n'
            "done\n"
        ),
        ["to", "f"],
    ),
]


@needs.with_program("bash")
@pytest.mark.parametrize(("body", "required"), CASES)
def test_the_least_call_is_not_refused(
    body: str, required: list[str], tmp_path: Path
) -> None:
    """The script ends well with nothing but what its contract requires, and refuses a
    call with less.
    """
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/bash\n{body}")
    derivation = derive(script.read_text(), path="script.sh")
    assert derivation is not None
    assert derivation.complete, derivation.unread
    schema = derivation.document["input"]
    line = CommandLine.from_dict(derivation.document["run"]["command_line"])

    def run(names: list[str]) -> int:
        given: dict[str, Any] = {}
        for name in names:
            known = schema["properties"][name]
            given[name] = (
                known["enum"][0]
                if "enum" in known
                else ["a"]
                if known.get("type") == "array"
                else "a"
            )
        words = to_argv(line, given)
        return subprocess.run(
            ["bash", str(script), *words], capture_output=True, timeout=300, check=False
        ).returncode

    assert sorted(schema.get("required", [])) == sorted(required)
    assert run(required) == 0
    assert not required or run(required[:-1]) != 0


def test_one_of_several_is_required() -> None:
    """A condition that no list of required arguments can say."""
    derivation = derive(
        f'#!/bin/bash\n{LOOP}if [ -z "$NAME" ] && [ -z "$DAYS" ]; then\n  exit 1\nfi\n',
        path="s.sh",
    )

    assert derivation is not None
    assert derivation.complete
    assert derivation.document["input"]["anyOf"] == [
        {"required": ["name"]},
        {"required": ["days"]},
    ]


def test_the_comment_at_the_top_and_the_usage_text_describe_the_tool() -> None:
    """What the words mean is in the usage text, which the tool shows whole."""
    source = (
        "#!/bin/bash\n# Rename pictures by date.\n#\n# Usage: rename.sh <folder>"
        ' [pattern]\n#   folder   where they are\nFOLDER="$1"\nPATTERN="${2:-*}"  #'
        ' which of them\n[ -z "$FOLDER" ] && exit 1\necho "$FOLDER" "$PATTERN"\n'
    )
    derivation = derive(source, path="rename.sh")

    assert derivation is not None
    assert (
        derivation.document["description"]
        == "Rename pictures by date. Usage: rename.sh <folder> [pattern]; folder where "
        "they are"
    )


@pytest.mark.parametrize(
    ("body", "required"),
    [
        ('QUERY=$1\necho "$QUERY"\n', []),
        ('set -eu\nQUERY=$1\necho "$QUERY"\n', ["query"]),
        ('set -o nounset\nQUERY="${1#x}"\necho "$QUERY"\n', ["query"]),
        ('set -eu\nif [ -t 0 ]; then\n  echo "$1"\nfi\n', []),
        ('set -eu\nif [ -t 0 ]; then\n  exit 0\nfi\nQUERY=$1\necho "$QUERY"\n', []),
    ],
)
def test_a_word_is_demanded_by_the_shell_itself_only_with_set_u(
    body: str, required: list[str]
) -> None:
    """Without it a word that is not there is empty, and the script goes on."""
    derivation = derive(f"#!/bin/bash\n{body}", path="s.sh")

    assert derivation is not None
    assert derivation.document["input"].get("required", []) == required
