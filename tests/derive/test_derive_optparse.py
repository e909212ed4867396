"""Scripts with optparse: what their parsers declare, and what the real ones read back."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv

SHOW = "import json\nprint(json.dumps([vars(options), args]))\n"

TYPES = """
from optparse import OptionParser
parser = OptionParser(usage="%prog [options] FILE OTHER", description="Compare two files.")
parser.add_option("-n", "--number", type="int", default=3, help="How many (default: %default), 100% sure")
parser.add_option("--ratio", type=float)
parser.add_option("-m", "--mode", choices=["fast", "slow"], default="fast")
parser.add_option("-q", action="store_false", dest="verbose", default=True)
parser.add_option("--dry-run", action="store_true")
(options, args) = parser.parse_args()
if len(args) != 2:
    parser.error("two files")
"""
GROUPS = """
import optparse
p = optparse.OptionParser()
group = optparse.OptionGroup(p, "Server")
group.add_option("--host", type="string", metavar="HOST", help="the host")
group.add_option("--size", nargs=2, type="int")
p.add_option_group(group)
p.add_option("-t", "--tag", action="append")
options, args = p.parse_args()
if not options.host:
    p.error("--host is required")
if not args:
    p.error("no files")
"""
LISTED = """
from optparse import OptionParser, make_option
LIST = [make_option("-v", action="count", dest="verbose"), make_option("-x", type="string")]
def main():
    parser = OptionParser(option_list=LIST)
    parser.set_defaults(x="abc")
    return parser.parse_args()
options, args = main()
"""
CALLBACK = """
from optparse import OptionParser
def take(option, opt, value, parser):
    parser.values.rest = list(parser.rargs)
    del parser.rargs[:]
parser = OptionParser()
parser.add_option("--rest", action="callback", callback=take, dest="rest")
parser.add_option("--name")
options, args = parser.parse_args()
"""
NO_WORDS = """
from optparse import OptionParser
parser = OptionParser()
parser.add_option("--json", action="store_const", const="json", dest="kind")
parser.add_option("--yaml", action="store_const", const="yaml", dest="kind")
parser.add_option("--level", type="int", dest="args")
options, args = parser.parse_args()
"""
INDEXED = """
import optparse
parser = optparse.OptionParser()
parser.add_option("-o", "--output", dest="out")
options, args = parser.parse_args()
source = args[0]
"""
UNPACKED = """
import optparse
parser = optparse.OptionParser()
options, args = parser.parse_args()
if not args:
    parser.error("no files")
source, target = args
"""


@pytest.mark.parametrize(
    ("script", "arguments", "options", "words"),
    [
        (
            TYPES,
            {"number": -4, "ratio": 0.5, "mode": "slow", "q": True, "dry_run": True, "args": ["-a", "b"]},
            {"number": -4, "ratio": 0.5, "mode": "slow", "verbose": False, "dry_run": True},
            ["-a", "b"],
        ),
        (
            GROUPS,
            {"host": "-h", "size": [-1, 2], "tag": ["a", "--", "-b"], "args": ["x"]},
            {"host": "-h", "size": [-1, 2], "tag": ["a", "--", "-b"]},
            ["x"],
        ),
        (LISTED, {"verbose": 2, "x": "=-1"}, {"verbose": 2, "x": "=-1"}, []),
        (NO_WORDS, {"kind": "yaml", "args": 2}, {"kind": "yaml", "args": 2}, []),
        (INDEXED, {"out": "--x", "args": ["--", "-y"]}, {"out": "--x"}, ["--", "-y"]),
    ],
)
def test_the_real_parser_reads_the_words_back(
    script: str, arguments: dict[str, Any], options: dict[str, Any], words: list[str]
) -> None:
    """Whatever a value begins with, optparse gives it to the argument that it was meant for."""
    derivation = derive(script, path="scripts/tool.py")
    assert derivation is not None
    accepted = derivation.to_contract("a/tool").accept(arguments)

    line = CommandLine.from_dict(derivation.document["run"]["command_line"])
    run = [sys.executable, "-c", script + SHOW, *to_argv(line, accepted.arguments)]
    shown = subprocess.run(run, capture_output=True, text=True, timeout=60, check=True)

    assert json.loads(shown.stdout) == [options, words]


def test_the_schema_says_what_is_declared() -> None:
    """Types, choices, defaults, help texts and the number of words come from the declarations."""
    derivation = derive(TYPES, path="scripts/tool.py")

    assert derivation is not None
    assert (derivation.framework, derivation.confidence, derivation.complete) == ("optparse", "high", True)
    properties = derivation.document["input"]["properties"]
    assert properties["number"] == {
        "type": "integer",
        "description": "How many (default: 3), 100% sure",
        "default": 3,
    }
    assert properties["mode"]["enum"] == ["fast", "slow"]
    assert properties["args"]["minItems"] == properties["args"]["maxItems"] == 2
    assert derivation.document["input"]["required"] == ["args"]


def test_what_the_script_demands_after_parsing_is_required() -> None:
    """An option without which the script calls ``parser.error`` is required, and so is a first word."""
    derivation = derive(GROUPS, path="scripts/tool.py")

    assert derivation is not None
    assert derivation.complete
    assert sorted(derivation.document["input"]["required"]) == ["args", "host"]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (CALLBACK, "--rest: its action is computed (line 7)"),
        (UNPACKED, "args: how many words the script needs is not known"),
        (INDEXED, "args: how many words the script needs is not known"),
        (LISTED, "arguments: how the words beside the options are used is not known"),
    ],
)
def test_what_is_not_sure_is_named(script: str, reason: str) -> None:
    """A callback may take any words, and a script that does not count its words may need some."""
    derivation = derive(script, path="scripts/tool.py")

    assert derivation is not None
    assert reason in [str(each) for each in derivation.unread]


def test_words_that_the_script_ignores_are_not_offered() -> None:
    """Where ``args`` is assigned and never used, the contract has the options only."""
    derivation = derive(NO_WORDS, path="scripts/tool.py")

    assert derivation is not None
    assert derivation.complete
    assert list(derivation.document["input"]["properties"]) == ["kind", "args"]
