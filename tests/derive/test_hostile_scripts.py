"""Scripts whose declarations refer to each other, or repeat, in ways that could cost
much more than their length.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillruntime.derive import derive
from tests.linear_time import growth

Shape = Callable[[int], str]


def python(
    before: str, each: Callable[[int], str], after: str = "", header: str = ""
) -> Shape:
    """Return argparse scripts of *n* repetitions."""
    start = f"import argparse\n{header}p = argparse.ArgumentParser()\n{before}"
    return lambda n: (
        f"{start}{''.join(map(each, range(n)))}{after}\nargs = p.parse_args()\n"
    )


def doubling(last: str) -> Shape:
    """Return shell functions that each call the next one twice, with *last* behind each
    call.
    """
    return lambda n: (
        "".join(f"f{i}() {{ f{i + 1}{last}; f{i + 1}{last}; }}\n" for i in range(n))
        + f"f0{last}\n"
    )


SCRIPTS: dict[str, tuple[str, int, Shape]] = {
    "calls of calls": ("a.py", 64, python("p", lambda n: ".x()")),
    "cases in cases": ("a.sh", 8000, lambda n: "case $1 in\n" * n),
    "closed cases in cases": (
        "a.sh",
        2000,
        lambda n: "case $1 in a) " * n + "x;; esac " * n,
    ),
    "conditions in conditions": ("a.sh", 2000, lambda n: "if a; then\n" * n),
    "substitutions in substitutions": ("a.sh", 2000, lambda n: 'x="$(a ' * n),
    "tests that do not end": ("a.sh", 2000, lambda n: "[[ a\n(( b\n" * n),
    "documents that do not end": ("a.sh", 4000, lambda n: "cat <<A\n" * n),
    "documents of Ruby that do not end": (
        "a.rb",
        4000,
        lambda n: "puts ARGV\n" + "".join(f"x <<A{i}\n" for i in range(n)),
    ),
    "documents of Ruby in one line": (
        "a.rb",
        4000,
        lambda n: "puts ARGV" + " <<A" * n + "\n" + "A\n" * n + "B\n" * n,
    ),
    "brackets in a usage": ("a.sh", 60_000, lambda n: "# Usage: " + "[" * n),
    "many usages": ("a.sh", 4000, lambda n: "# Usage: x <a>\n\n" * n),
    "lists of words in Python": (
        "a.py",
        4000,
        lambda n: "import sys\n" + "x = sys.argv[1:]\n" * n,
    ),
    "choices in choices of Python": (
        "a.py",
        90,
        lambda n: (
            "import sys\na = sys.argv[1]\n"
            + "".join(" " * i + "match a:\n" for i in range(n))
        ),
    ),
    "counts of words": (
        "a.py",
        2000,
        lambda n: "import sys\n" + "if len(sys.argv) < 2: sys.exit(1)\n" * n,
    ),
    "Python functions that call functions": (
        "a.py",
        400,
        lambda n: (
            "import sys\nprint(sys.argv)\n"
            + "".join(f"def f{i}():\n  f{i + 1}()\n  f{i + 1}()\n" for i in range(n))
            + "f0()\n"
        ),
    ),
    "lists of words in Node": (
        "a.js",
        8000,
        lambda n: "const a = process.argv.slice(2)\n" * n,
    ),
    "switches in switches": (
        "a.js",
        4000,
        lambda n: "const a = process.argv[2];" + "switch (a) { case 'x':\n" * n,
    ),
    "templates in templates": ("a.js", 4000, lambda n: "`${process.argv}" * n),
    "cases in cases of Ruby": (
        "a.rb",
        4000,
        lambda n: "a = ARGV[0]\n" + "case a\nwhen 'x'\n" * n,
    ),
    "one long converter": (
        "a.py",
        300,
        lambda n: (
            "import argparse\ndef f(x):\n"
            + "    x = x + 1\n" * n
            + "    return x\np = argparse.ArgumentParser()\n"
            + "".join(f"p.add_argument('--a{i}', type=f)\n" for i in range(n))
            + "p.parse_args()\n"
        ),
    ),
    "a parent of many commands": (
        "a.py",
        60,
        lambda n: (
            "import argparse\nb = argparse.ArgumentParser(add_help=False)\n"
            + "".join(f"b.add_argument('--a{i}')\n" for i in range(n))
            + "p = argparse.ArgumentParser()\ns = p.add_subparsers()\n"
            + "".join(f"s.add_parser('c{i}', parents=[b])\n" for i in range(n))
            + "p.parse_args()\n"
        ),
    ),
    "shell functions that pass the words on": ("a.sh", 64, doubling(' "$@"')),
    "shell functions that call functions": ("a.sh", 64, doubling("")),
    "calls of one shell function": (
        "a.sh",
        800,
        lambda n: "f() {\n" + "ls\n" * n + "}\n" + "f\n" * n + "echo $1\n",
    ),
    "shifted places": (
        "a.sh",
        1000,
        lambda n: "".join(f"A{i}=$1; shift\n" for i in range(n)),
    ),
    "options in a case": (
        "a.sh",
        1000,
        lambda n: (
            "while [ $# -gt 0 ]; do\ncase $1 in\n"
            + "".join(f"--a{i}) A{i}=$2; shift ;;\n" for i in range(n))
            + "esac\nshift\ndone\n"
        ),
    ),
}
"""The path of each, how many repetitions are read, and the script with *n* of them."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_hostile_script_takes_linear_time(name: str) -> None:
    path, size, script = SCRIPTS[name]

    assert (
        growth(lambda text: derive(text, path=path), script, size=size, quick=0.06)
        is None
    )


@pytest.mark.parametrize(
    "source",
    [
        "p.add_argument('a', choices=range(1, 5, 0))\np.parse_args()\n",
        "p.add_argument('a')\na = p.parse_args()\nif len() > 2:\n    p.error('a')\n",
    ],
)
def test_a_call_that_python_refuses_is_read_all_the_same(source: str) -> None:
    """The script would fail there; the reader does not."""
    script = f"import argparse\np = argparse.ArgumentParser()\n{source}"
    found = derive(script, path="a.py")

    assert found is not None
    assert list(found.document["input"]["properties"]) == ["a"]
