"""Each derived contract is given the commands that its skill shows."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import Derivation, derive
from skillruntime.derive.shown_commands import shown_commands

ARGPARSE = (
    "import argparse\n"
    "p = argparse.ArgumentParser()\n"
    "p.add_argument('source')\n"
    "p.add_argument('-n', '--limit', type=int)\n"
    "p.add_argument('--kind', choices=['png', 'jpeg'])\n"
    "p.add_argument('-v', '--verbose', action='store_true')\n"
    "p.add_argument('-q', action='store_true')\n"
    "p.add_argument('--tag', nargs='+')\n"
    "p.parse_args()\n"
)
LOOP = (
    "#!/bin/bash\n"
    "while [ $# -gt 0 ]; do\n"
    '  case "$1" in\n'
    '    --out) OUT="$2"; shift 2 ;;\n'
    '    --kind) KIND="$2"; shift 2 ;;\n'
    "    *) exit 2 ;;\n"
    "  esac\n"
    "done\n"
    '[ -z "$OUT" ] && exit 2\n'
    'case "$KIND" in png|jpeg) ;; *) exit 2 ;; esac\n'
    'echo "$OUT" "$KIND"\n'
)


def derived(source: str, path: str, instructions: str) -> Derivation:
    found = derive(source, path=path, instructions=instructions, skill="maps")
    assert found is not None
    found.to_contract()
    return found


TAKEN = [
    "python scripts/x.py a.png",
    "python3 scripts/x.py a.png --limit 3 -v",
    "uv run --with pillow {baseDir}/scripts/x.py a.png --limit=3",
    "cd work && scripts/x.py a.png -n5 -vq | less",
    "./scripts/x.py a.png --kind png > out.txt 2>&1",
    "python scripts/x.py <file> --limit <n> --kind <kind>",
    'python scripts/x.py "$FILE" --limit N [--verbose]',
    "python scripts/x.py a.png --kind {png|jpeg}  # one of them",
    "python scripts/x.py --tag a b -v a.png",
    "python scripts/x.py --verb -- -a.png",
    "FORCE=1 python -u ~/.claude/skills/maps/scripts/x.py a.png",
]


@pytest.mark.parametrize("command", TAKEN)
def test_a_command_is_read_as_the_script_reads_it(command: str) -> None:
    """Interpreters, abbreviations, attached values and pipes; a placeholder stands for
    a value that fits.
    """
    found = derived(ARGPARSE, "scripts/x.py", f"```bash\n{command}\n```\n")

    assert [(each.refusal, each.command) for each in found.tried] == [("", command)]
    assert found.document["derived"]["tried"] == [command]


REFUSED = {
    "python scripts/x.py": "'source' is a required property",
    "python scripts/x.py a --size 3": "--size is not one of its flags",
    "python scripts/x.py a b": "'b' is a word too many",
    "python scripts/x.py a --kind gif": '/kind: "gif" is not one of "png", "jpeg"',
    "python scripts/x.py a --limit three": '/limit: "three" is not an integer',
    "python scripts/x.py a --limit": "--limit has no value",
}


@pytest.mark.parametrize(("command", "refusal"), REFUSED.items())
def test_what_a_parser_declares_stays_and_its_author_gets_the_finding(
    command: str, refusal: str
) -> None:
    """The instructions may be older than the script."""
    found = derived(ARGPARSE, "scripts/x.py", f"```\n{command}\n```\n")
    alone = derive(ARGPARSE, path="scripts/x.py")

    assert [each.refusal for each in found.tried] == [refusal]
    assert found.document["derived"]["refused"] == [f"{command}: {refusal}"]
    assert alone is not None
    assert found.document["input"] == alone.document["input"]


IGNORED = [
    "Read `scripts/x.py a b` first.",
    "```python\nrun('scripts/x.py')\n```",
    "```\nscripts/x.py\n```",
    "```\npython scripts/x.py [options]\n```",
    "```\npython scripts/x.py ...\n```",
    "```\npython skills/towns/scripts/x.py a b\n```",
    "```\ncat scripts/x.py | head\n```",
    "```\npython scripts/y.py a b\n```",
]


@pytest.mark.parametrize("text", IGNORED)
def test_what_is_not_a_whole_command_of_the_script_is_not_tried(text: str) -> None:
    """A file that is named, words that are left open, and a script of another skill."""
    assert derived(ARGPARSE, "scripts/x.py", text).tried == ()


def test_a_guess_opens_in_the_part_concerned_until_the_command_is_taken() -> None:
    """A demand goes, choices become words of the description, a flag that was not read
    is one of the further words; what the command does not concern stays.
    """
    before: dict[str, Any] = derived(LOOP, "x.sh", "").document["input"]
    assert before["required"] == ["out"]
    assert before["properties"]["kind"]["enum"] == ["png", "jpeg"]

    without = derived(LOOP, "x.sh", "`bash x.sh --kind png`").document["input"]
    assert "required" not in without
    assert without["properties"]["kind"] == before["properties"]["kind"]

    other = derived(LOOP, "x.sh", "`bash x.sh --out o --kind gif`").document["input"]
    assert other["required"] == ["out"]
    assert other["properties"]["kind"] == {
        "type": "string",
        "description": "One of png, jpeg, among others",
    }

    more = derived(LOOP, "x.sh", "`bash x.sh --out o --fast`").document["input"]
    assert list(more["properties"]) == ["out", "kind", "args"]
    assert more["required"] == ["out"]


def test_the_commands_of_the_scripts_own_usage_are_tried_too() -> None:
    """A usage text says how the script was meant to be called."""
    source = "#!/bin/bash\n# Usage: x.sh <name> [days]\nNAME=$1\necho $NAME ${2:-1}\n"
    found = derived(source, "x.sh", "")

    assert [each.command for each in found.tried] == ["./x.sh <name> [days]"]


def test_a_number_of_words_that_is_read_stays() -> None:
    """The script refuses the command that SKILL.md shows, so the author gets the finding."""
    source = (
        "import sys\nif len(sys.argv) < 3:\n    print('Usage: x.py [in pdf] [out pdf]')\n"
        "    sys.exit(1)\nfill(sys.argv[1], sys.argv[2])\n"
    )
    found = derived(source, "x.py", "`python x.py a.pdf`")

    assert found.document["input"]["required"] == ["in_pdf", "out_pdf"]
    assert [each.refusal for each in found.tried] == [
        "'out_pdf' is a required property",
        "",
    ]


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("- `scripts/x.sh`: Draws a map of the town.", "Draws a map of the town."),
        ("| `x.sh` | Draws a map of the town |", "Draws a map of the town"),
        ("```\n# Draw a whole map\n./x.sh\n```", "Draw a whole map"),
        ("## Drawing the maps\n\nRun `x.sh`.", "Drawing the maps"),
        ("Run `x.sh`.", "Runs x.sh"),
    ],
)
def test_a_script_without_words_of_its_own_is_described_by_the_instructions(
    instructions: str, expected: str
) -> None:
    """The sentence, the row, the comment or the heading that names it."""
    found = derived('#!/bin/sh\nexec draw "$@"\n', "scripts/x.sh", instructions)

    assert found.document["description"] == expected


def test_lines_of_a_quotation_and_continued_lines_are_one_command() -> None:
    """A fence inside a quotation has its mark on each line."""
    text = "> ```bash\n> python x.py a \\\n>   --limit 3\n> ```\n"

    assert [each.words for each in shown_commands(text)] == [("a", "--limit", "3")]
