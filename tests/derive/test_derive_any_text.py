"""Whatever a script's source is, reading it gives a derivation or nothing, and raises
nothing.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillruntime.derive import derive
from skillruntime.errors import InvalidSkillError

EXAMPLES = int(
    os.environ.get("SKILLRUNTIME_FUZZ", 3 * settings.default.max_examples // 2)
)
SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("[a-z]*.*"))
SOURCES = {
    path.name: path.read_text()
    for path in SCRIPTS
    if path.suffix in (".py", ".sh", ".js", ".mjs")
}
PIECES = [
    "(",
    ")",
    "'",
    "{",
    "]",
    "\n",
    "  ",
    "return 1\n",
    "*a, **k",
    "f()",
    "=None",
    "not ",
    "x or ",
    "lambda: 0",
]


@st.composite
def damaged_scripts(draw: st.DrawFn) -> tuple[str, str]:
    """A script whose lines are lost, repeated or moved, and whose words are others."""
    name = draw(st.sampled_from(sorted(SOURCES)))
    lines = SOURCES[name].splitlines(keepends=True)
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.integers(0, 4)):
            case 0:
                lines[at] = ""
            case 1:
                lines[at] *= 2
            case 2:
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                words = lines[at].split('"')
                words[draw(st.integers(0, len(words) - 1))] = draw(
                    st.sampled_from(PIECES)
                )
                lines[at] = '"'.join(words)
            case _:
                old, new = (
                    draw(st.sampled_from(["True", "str", "int", "=", "name", "1"])),
                    draw(st.sampled_from(PIECES)),
                )
                lines[at] = lines[at].replace(old, new, 1)
    return name, "".join(lines)


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(script=damaged_scripts())
def test_a_damaged_script_raises_nothing(script: tuple[str, str]) -> None:
    """Only making a contract of what was read may say that it is none."""
    name, source = script

    derivation = derive(source, path=name)

    if derivation is not None:
        try:
            derivation.to_contract("skill/tool")
        except InvalidSkillError:
            pass


@pytest.mark.parametrize(
    ("name", "source"),
    [
        (
            "a.py",
            "import argparse\n"
            "class A:\n"
            "    return 1\n"
            "argparse.ArgumentParser().parse_args()",
        ),
        (
            "a.py",
            "import click\n"
            "@click.command(help=text())\n"
            "@click.option('--a', is_flag=flag())\n"
            "def f(a): ...\n"
            "f()",
        ),
        (
            "a.py",
            "import typer\n"
            "app = typer.Typer(name=n())\n"
            "@app.command(help=h())\n"
            "def f(a: int): ...\n"
            "app()",
        ),
        (
            "a.js",
            "const argv = yargs(process.argv.slice(2)).option('a', {describe: text(), "
            "type: 'string'}).argv",
        ),
    ],
)
def test_what_is_computed_is_never_asked_whether_it_is_true(
    name: str, source: str
) -> None:
    """A help text or a flag's kind may come from anywhere."""
    derive(source, path=name)


ARGPARSE = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--x')\n"
REPEATED = {
    "many shifts": ("x.sh", "#!/bin/sh\n" + "out=$1\nshift\n" * 1_500),
    "a usage line with many spaces": (
        "x.sh",
        '#!/bin/sh\n[ $# -gt 1 ] || { echo "usage: $0 F' + " " * 12_000 + 'x";\n',
    ),
    "many empty lines": (
        "x.sh",
        '#!/bin/sh\n: "${1?}"\n' + "\n" * 20_000 + 'echo "$1"\n',
    ),
    "many ends of no loop": (
        "x.sh",
        '#!/bin/sh\nfor f in "$@"; do\n' + 'echo "$f"\ndone\n' * 3_000,
    ),
    "many open here-documents": ("x.sh", "#!/bin/sh\n" + "cat <<EOF\n$1\n" * 2_000),
    "an ambiguous Node script": (
        "x.js",
        "const dir = process.argv[2];\nif x:\n" + "f x:\n" * 10_000 + "{" * 3_000,
    ),
    "a Node script of members of members": (
        "x.js",
        "const a = process.argv[2];\nf(a" + ".b" * 1_600 + ");\n",
    ),
    "a Node script of calls of calls": (
        "x.js",
        "const a = process.argv[2];\nprocess.exit(a)" + "(1)" * 1_000 + ";\n",
    ),
    "a Node script of arrows without bodies": (
        "x.js",
        "const a = process.argv[2];\n" + "||a=>;" * 3_200,
    ),
    "unclosed arrays": ("x.sh", '#!/bin/bash\necho "$1"\n' + "a=(" * 6_000),
    "unclosed parameters": ("x.sh", "#!/bin/sh\n" + "${1:-" * 19_000),
    "thousands of here-strings": ("x.sh", "#!/bin/sh\n" + "a) <<<a$1 <<a\n" * 7_000),
    "unclosed here-documents": ("x.sh", '#!/bin/bash\necho "$1"\n' + "<<E\n" * 4_900),
    "a pipe of thousands": ("x.sh", '#!/bin/bash\necho "$1"\n' + "a |" * 6_500),
    "a test of thousands of words": (
        "x.sh",
        '#!/bin/bash\nKEY="${1:-}"\nif [ -z '
        + '"$Az ' * 12_000
        + '"$KEY" ]; then\n  echo "Error: KEY is required"\n  exit 1\nfi\n',
    ),
    "thousands of blanks among arms": (
        "x.sh",
        '#!/bin/bash\nwhile [ -n "$1" ]; do\n  case "$1" in\n'
        + " " * 60_000
        + "esac\n  shift\ndone\n",
    ),
    "a usage line of thousands of quotes": (
        "x.sh",
        "#!/bin/sh\n#usage: x " + "<a> '" * 14_000 + '\necho "$1"\n',
    ),
    "stdin read again and again": (
        "x.py",
        "import json, sys\n"
        + "data = json.load(sys.stdin)\nname = data['name']\n" * 1_200,
    ),
    "parents of parents": (
        "x.py",
        ARGPARSE
        + "".join(
            f"p = argparse.ArgumentParser(parents=[p, p], conflict_handler='{n}')\n"
            for n in range(60)
        )
        + "p.parse_args()\n",
    ),
    "many checks": (
        "x.py",
        f"{ARGPARSE}a = p.parse_args()\n"
        + "".join(f"if not a.x and a.y{n}:\n    p.error('x')\n" for n in range(2_000)),
    ),
    "a check in many loops": (
        "x.py",
        f"{ARGPARSE}a = p.parse_args()\n"
        + "".join(f"{'  ' * n}for k{n} in ('x', 'y', 'z', 'v'):\n" for n in range(18))
        + "  " * 18
        + "if not a.x: p.error('x')\n",
    ),
}


@pytest.mark.parametrize(("name", "source"), REPEATED.values(), ids=REPEATED)
@pytest.mark.quick_cases(
    [
        "many shifts",
        "a usage line with many spaces",
        "many open here-documents",
        "a Node script of members of members",
        "a Node script of calls of calls",
        "unclosed arrays",
        "unclosed parameters",
        "unclosed here-documents",
        "thousands of blanks among arms",
        "a usage line of thousands of quotes",
        "stdin read again and again",
        "parents of parents",
        "many checks",
    ]
)
def test_a_repeated_part_costs_no_more_than_its_length(name: str, source: str) -> None:
    """Each of these took many seconds, some without an end."""
    start = time.process_time()

    derive(source, path=f"scripts/{name}")

    assert time.process_time() - start < 5


def test_a_number_of_values_below_one_is_named() -> None:
    """``maxItems: -1`` is not JSON Schema, and the contract could not be used."""
    source = f"{ARGPARSE}p.add_argument('--y', nargs=-1)\np.parse_args()\n"

    derivation = derive(source, path="scripts/tool.py")

    assert derivation is not None
    assert [str(each) for each in derivation.unread] == [
        "--y: it takes words in a way that cannot be declared (line 4)"
    ]
    assert list(derivation.document["input"]["properties"]) == ["x"]
    derivation.to_contract()


def test_a_group_of_thousands_is_not_written_out_pair_by_pair() -> None:
    """Each pair of an exclusive group is one rule of the schema; what is too large for
    that is named instead.
    """
    added = "".join(f"g.add_argument('--a{n}')\n" for n in range(500))
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "g = p.add_mutually_exclusive_group()\n"
        f"{added}"
    )

    derivation = derive(f"{source}p.parse_args()\n", path="scripts/tool.py")

    assert derivation is not None
    assert [str(each) for each in derivation.unread] == [
        "arguments: more than 60 of them exclude each other"
    ]
