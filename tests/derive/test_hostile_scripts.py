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
    "one option of click": (
        "a.py",
        400,
        lambda n: (
            "import click\n@click.command()\n"
            + '@click.option("--a")\n' * n
            + "def f(a): pass\nf()\n"
        ),
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
