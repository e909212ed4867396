"""Asks a script's own parser, in a process of its own, what a command line means to
it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"

_HARNESS = r"""
import json, os, runpy, sys

def plain(value):
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items() if not callable(item)}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if hasattr(value, "value") and not isinstance(value, (str, int)):
        return plain(value.value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

def answer(values):
    sys.__stdout__.write("\n<<<" + json.dumps(plain(values)) + ">>>")
    sys.__stdout__.flush()
    os._exit(0)

import argparse
original = argparse.ArgumentParser.parse_args
def parse_args(self, args=None, namespace=None):
    answer(vars(original(self, args, namespace)))
argparse.ArgumentParser.parse_args = parse_args

def levels(context):
    values = levels(context.parent) if context.parent else {}
    return values | context.params

def invoke(self, context):
    if hasattr(context.command, "commands") and context.invoked_subcommand is not None:
        return None
    answer(levels(context))

try:
    import click.core
    click.core.Command.invoke = invoke
    import typer.core
    for base in typer.core.TyperCommand.__mro__:
        if base.__name__ == "Command":
            base.invoke = invoke
except ImportError:
    pass
script = sys.argv[1]
sys.argv = sys.argv[1:]
runpy.run_path(script, run_name="__main__")
"""


def parsed(script: str, words: list[str], directory: Path) -> dict[str, Any]:
    """Return the values that the parser of *script* gives for *words*; its complaint is
    an AssertionError.
    """
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        _HARNESS,
        str(SCRIPTS / script),
        *words,
    ]
    done = subprocess.run(
        command, cwd=directory, capture_output=True, text=True, timeout=300, check=False
    )
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", done.stderr)
    if missing is not None:  # a plain install has no click
        raise ModuleNotFoundError(missing[0], name=missing[1])
    assert "<<<" in done.stdout, done.stderr[-2000:]
    values: dict[str, Any] = json.loads(
        done.stdout[done.stdout.rindex("<<<") + 3 : done.stdout.rindex(">>>")]
    )
    return values
