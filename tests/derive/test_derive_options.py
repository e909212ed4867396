"""Options that scripts take apart by hand, and what scripts refuse after their parser has run."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import CommandLine, Derivation, derive, to_argv
from skillruntime.errors import SkillInputError

TEXT = {"type": "string"}
PLAIN = {"type": "string", "pattern": "^([^-]|$)"}
SWITCH = {"type": "boolean", "default": False}


def read(source: str, path: str = "x.py") -> tuple[dict[str, Any], list[str]]:
    """Return the properties and the required names of a script that must be read whole."""
    derivation = derived(source, path)
    assert derivation.complete, derivation.unread
    document = derivation.document["input"]
    return document["properties"], document.get("required", [])


def derived(source: str, path: str = "x.py") -> Derivation:
    """Return what is read of *source*."""
    derivation = derive(source, path=path)
    assert derivation is not None
    return derivation


def words(source: str, arguments: dict[str, Any], path: str = "x.py") -> list[str]:
    """Return the words that *arguments* become."""
    derivation = derived(source, path)
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted)


POP = """
import sys
args = sys.argv[1:]
source = target = None
while args:
    word = args.pop(0)
    if word == "--force":
        force = True
    elif word in ("--target", "-t"):
        target = args.pop(0)
    elif word.startswith("-"):
        sys.exit(2)
    else:
        source = word
if source is None:
    print("usage: x.py SOURCE")
    sys.exit(1)
"""
INDEX = """
import sys
i, names, size = 1, [], 3
while i < len(sys.argv):
    if sys.argv[i] == "--size":
        size = int(sys.argv[i + 1])
        i += 2
    else:
        names.append(sys.argv[i])
        i += 1
if len(names) != 2:
    sys.exit("usage: x.py A B")
"""
NEXT = """
import sys
words = iter(sys.argv[1:])
title = ""
for word in words:
    if word == "--title":
        title = next(words)
    else:
        sys.exit("unknown argument")
if not title:
    sys.exit("--title is required")
"""
GETOPT = """
import getopt, sys
options, paths = getopt.getopt(sys.argv[1:], "o:q", ["output="])
output = None
for flag, value in options:
    if flag in ("-o", "--output"):
        output = value
if not paths:
    sys.exit("usage: x.py FILE")
"""
CHOICE = """
import sys
mode = "fast"
for i, word in enumerate(sys.argv):
    if word == "--mode":
        mode = sys.argv[i + 1]
if mode not in ("fast", "slow"):
    sys.exit("unknown mode")
"""
ATTACHED = """
import sys
options = {}
for word in sys.argv[1:]:
    if word.startswith("--") and "=" in word:
        key, value = word[2:].split("=", 1)
        options[key] = value
if "city" not in options:
    sys.exit("--city=NAME is required")
print(options.get("units"))
"""


@pytest.mark.parametrize(
    ("source", "properties", "required"),
    [
        (POP, {"force": SWITCH, "target": TEXT, "source": PLAIN}, ["source"]),
        (
            INDEX,
            {"size": {"type": "integer", "default": 3}, "a": PLAIN, "b": PLAIN},
            ["a", "b"],
        ),
        (NEXT, {"title": TEXT}, ["title"]),
        (
            GETOPT,
            {"output": TEXT, "q": SWITCH, "file": {"type": "array", "items": PLAIN, "minItems": 1}},
            ["file"],
        ),
        (CHOICE, {"mode": {"type": "string", "enum": ["fast", "slow"], "default": "fast"}}, []),
        (ATTACHED, {"city": TEXT, "units": TEXT}, ["city"]),
    ],
    ids=["pop", "index", "next", "getopt", "choice", "attached"],
)
def test_a_loop_over_the_words_of_a_python_script_is_read(
    source: str, properties: dict[str, Any], required: list[str]
) -> None:
    """The loop is followed on one command line after the other."""
    assert read(source) == (properties, required)


def test_a_flag_and_its_value_become_one_word_where_the_script_splits_it() -> None:
    """Such a loop does not know ``--city Rome``."""
    assert words(ATTACHED, {"city": "Rome", "units": "-m"}) == ["--city=Rome", "--units=-m"]


def test_options_come_before_the_words_of_a_loop() -> None:
    """The loop takes them in any order, and a value is never mistaken for a flag."""
    assert words(POP, {"source": "a", "target": "-b", "force": True}) == ["--force", "--target", "-b", "a"]


FOR = """
const args = process.argv;
let input = null, width = 80;
for (let i = 2; i < args.length; i++) {
  switch (args[i]) {
    case '--input':
    case '-i':
      input = args[++i];
      break;
    case '--width':
      width = parseInt(args[++i], 10);
      break;
    default:
      process.exit(1);
  }
}
if (!input) { console.error('--input is required'); process.exit(1); }
"""
CONTINUE = """
const argv = process.argv.slice(2);
const opts = { out: 'a.txt', files: [] };
for (let i = 0; i < argv.length; i += 1) {
  if (argv[i] === '--out') { opts.out = argv[i + 1]; i++; continue; }
  opts.files.push(argv[i]);
}
if (opts.files.length === 0) throw new Error('no files');
"""
INDEX_OF = """
const at = process.argv.indexOf('--city');
const city = at !== -1 ? process.argv[at + 1] : null;
if (!city) process.exit(1);
"""
OWN = """
function parseArgs(argv) {
  const out = {};
  for (let i = 0; i < argv.length; i++) {
    if (argv[i].startsWith('--')) out[argv[i].slice(2)] = argv[++i];
  }
  return out;
}
const args = parseArgs(process.argv.slice(2));
if (!args.repo) { console.error('--repo'); process.exit(1); }
console.log(args.limit);
"""
IMPORTED = """
import { argv, exit } from 'node:process';
const [, , name, greeting = 'Hello'] = argv;
if (!name) exit(1);
"""
DENO = "const [name] = Deno.args;\nif (!name) { console.error('no name'); Deno.exit(1); }\n"
EXIT_CODE = (
    "const { argv } = require('process');\n"
    "if (argv[2] === undefined) { process.exitCode = 1; } else console.log(argv[2]);\n"
)


@pytest.mark.parametrize(
    ("source", "properties", "required"),
    [
        (FOR, {"input": TEXT, "width": {"type": "integer", "default": 80}}, ["input"]),
        (
            CONTINUE,
            {"out": TEXT, "words": {"type": "array", "items": PLAIN, "minItems": 1}},
            ["words"],
        ),
        (INDEX_OF, {"city": TEXT}, ["city"]),
        (OWN, {"repo": TEXT, "limit": TEXT}, ["repo"]),
        (IMPORTED, {"name": TEXT, "greeting": {"type": "string", "default": "Hello"}}, ["name"]),
        (DENO, {"name": TEXT}, ["name"]),
        (EXIT_CODE, {"argument_1": TEXT}, ["argument_1"]),
    ],
    ids=["for", "continue", "indexOf", "own parseArgs", "imported argv", "Deno", "exitCode"],
)
def test_a_loop_over_the_words_of_a_node_script_is_read(
    source: str, properties: dict[str, Any], required: list[str]
) -> None:
    """The script is translated and followed as a Python one is."""
    assert read(source, "x.mjs") == (properties, required)


ARGPARSE = """
import argparse, sys
p = argparse.ArgumentParser()
p.add_argument("--a")
p.add_argument("--b")
p.add_argument("--list", action="store_true")
args = p.parse_args()
"""


@pytest.mark.parametrize(
    ("demand", "taken", "refused"),
    [
        ("if not all([args.a, args.b]): sys.exit('both')", {"a": "1", "b": "2"}, {"a": "1"}),
        ("for n in ('a', 'b'):\n    if not getattr(args, n):\n        sys.exit(2)", {"a": "1", "b": "2"}, {"b": "1"}),
        ("if args.list:\n    sys.exit(0)\nif args.a is None:\n    sys.exit(2)", {"list": True}, {"b": "1"}),
        (
            "if args.list:\n    print(1)\nelif args.a:\n    print(2)\nelse:\n    p.error('x')",
            {"a": "1"},
            {"list": False},
        ),
        ("a = args.a\nif not a:\n    raise SystemExit('a is required')", {"a": "1"}, {}),
        ("if args.a is None and (args.b is None or not args.list): p.error('x')", {"b": "1", "list": True}, {"b": "1"}),
    ],
)
def test_what_a_script_refuses_after_parsing_is_required(
    demand: str, taken: dict[str, Any], refused: dict[str, Any]
) -> None:
    """Any condition counts that ends the script with an error."""
    contract = derived(ARGPARSE + demand + "\n").to_contract()

    contract.accept(taken, policy="strict")
    with pytest.raises(SkillInputError):
        contract.accept(refused, policy="strict")


@pytest.mark.parametrize(
    "end", ["sys.exit(0)", "sys.exit()", "logging.error('nothing to do')", "return 0", "raise SystemExit"]
)
def test_an_option_is_not_required_where_the_script_ends_well(end: str) -> None:
    """A status of 0 is not a refusal, and a logged error ends nothing."""
    lines = [*ARGPARSE.strip().splitlines()[1:], "if not args.a:", f"    {end}"]
    source = "import argparse, logging, sys\ndef main():\n" + "".join(f"    {line}\n" for line in lines) + "main()\n"

    assert "required" not in derived(source).document["input"]


@pytest.mark.parametrize("error", ["UsageError('x')", "BadParameter('x')", "ClickException('x')"])
def test_a_click_error_in_the_function_is_a_demand(error: str) -> None:
    """click shows it as it shows its own refusals."""
    source = (
        "import click\n@click.command()\n@click.option('--since')\n@click.option('--until')\n"
        f"def main(since, until):\n    if not since and not until:\n        raise click.{error}\nmain()\n"
    )

    contract = derived(source).to_contract()

    assert contract.accept({"until": "now"}, policy="strict").arguments["until"] == "now"
    with pytest.raises(SkillInputError):
        contract.accept({}, policy="strict")


def test_an_option_with_a_variable_of_the_environment_is_not_required() -> None:
    """click fills it in before the function sees it."""
    source = (
        "import click\n@click.command()\n@click.option('--key', envvar='KEY')\n"
        "def main(key):\n    if not key:\n        raise click.UsageError('no key')\nmain()\n"
    )

    assert "required" not in derived(source).document["input"]


def test_a_typer_exit_with_a_status_is_a_demand() -> None:
    """The switch that is off by default is one of the two, and only as true."""
    source = (
        "import typer\nfrom typing import Optional\napp = typer.Typer()\n@app.command()\n"
        "def main(query: Optional[str] = typer.Argument(None), latest: bool = False):\n"
        "    if query is None and not latest:\n        raise typer.Exit(code=2)\napp()\n"
    )

    contract = derived(source).to_contract()

    contract.accept({"latest": True}, policy="strict")
    with pytest.raises(SkillInputError):
        contract.accept({"latest": False}, policy="strict")


SHELL = [
    (
        'while [[ $# -gt 0 ]]; do\n  key="$1"\n  case $key in\n    -n|--name) NAME="$2"; shift 2 ;;\n  esac\ndone\n'
        'if [[ -z "${NAME}" ]]; then exit 1; fi\n',
        {"name": TEXT},
        ["name"],
    ),
    (
        'for i in "$@"; do\n  case $i in\n    --env=*) ENV="${i#*=}" ;;\n    *) exit 2 ;;\n  esac\ndone\n'
        ': "${ENV:?}"\n',
        {"env": TEXT},
        ["env"],
    ),
    (
        'action="$1"\nif [ "$action" = "start" ]; then\n  echo a\nelif [ "$action" = "stop" ]; then\n  echo b\nelse\n'
        "  exit 1\nfi\n",
        {"action": {"type": "string", "enum": ["start", "stop"]}},
        ["action"],
    ),
    (
        'out=$1\nshift\n[ $# -gt 0 ] || exit 64\nfor f in "$@"; do echo $f $out; done\n',
        {"out": TEXT, "f": {"type": "array", "items": TEXT, "minItems": 1}},
        ["out", "f"],
    ),
    (
        "n=$1\nif ! [[ $n =~ ^[0-9]+$ ]]; then\n  exit 1\nfi\nseq $n\n",
        {"n": {"type": "integer", "minimum": 0}},
        ["n"],
    ),
]


@pytest.mark.parametrize(("source", "properties", "required"), SHELL)
def test_usual_forms_of_shell_scripts_are_read(source: str, properties: dict[str, Any], required: list[str]) -> None:
    """A variable for ``$1`` in the loop, attached values, ``if`` chains, words counted after ``shift``, numbers."""
    assert read(f"#!/bin/bash\n{source}", "x.sh") == (properties, required)


@pytest.mark.parametrize(
    ("usage", "least"),
    [("x.sh <name> [days]", 1), ("x.sh up|down NAME", 1), ("x.sh [name]", 0), ("x.sh FROM TO", 2)],
)
def test_words_that_cannot_be_read_are_as_many_as_the_usage_demands(usage: str, least: int) -> None:
    """A call without them would only be shown the usage."""
    words = derived(f'#!/bin/sh\n# Usage: {usage}\nexec tool "$@"\n', "x.sh").document["input"]["properties"]["args"]

    assert words.get("minItems", 0) == least


def test_two_options_of_getopt_whose_values_cannot_be_followed_are_two_arguments() -> None:
    """In imaplib's own program a handler may replace the pairs, so no variable is known to hold a value."""
    source = """
import getopt, sys
level = 0
try:
    pairs, args = getopt.getopt(sys.argv[1:], "d:s:")
except getopt.error as error:
    pairs, args = (), ()
command = None
for option, value in pairs:
    if option == "-d":
        level = int(value)
    elif option == "-s":
        command = value
host = args[0] if args else ""
print(host, level, command)
"""

    assert derived(source, "x.py").flags == {"-d": "d", "-s": "s"}
