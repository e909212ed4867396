"""Scripts whose declarations refer to each other, or repeat, in ways that could cost much more than their length."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from skillruntime.derive import derive
from tests.linear_time import growth

Shape = Callable[[int], str]


def python(before: str, each: Callable[[int], str], after: str = "", header: str = "") -> Shape:
    """Return argparse scripts of *n* repetitions."""
    start = f"import argparse\n{header}p = argparse.ArgumentParser()\n{before}"
    return lambda n: f"{start}{''.join(map(each, range(n)))}{after}\nargs = p.parse_args()\n"


SCRIPTS: dict[str, tuple[str, int, Shape]] = {
    "calls of calls": ("a.py", 64, python("p", lambda n: ".x()")),
}
"""The path of each, how many repetitions are read, and the script with *n* of them."""


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_hostile_script_takes_linear_time(name: str) -> None:
    path, size, script = SCRIPTS[name]

    assert growth(lambda text: derive(text, path=path), script, size=size, quick=0.06) is None
