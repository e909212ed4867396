"""Commands that commander, yargs and docopt declare, and parsers that are classes of the script's own."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import CommandLine, Derivation, derive, to_argv


def derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    return found


def branches(derivation: Derivation) -> list[tuple[list[str], list[str]]]:
    """The names and the required names of each command."""
    return [(list(each["properties"]), each["required"]) for each in derivation.document["input"]["oneOf"]]


COMMANDER = """
const { Command } = require("commander");
const program = new Command();
program.name("t").option("-q, --quiet");
program.command("add <name> [tags...]").description("add one").option("-f, --force", "overwrite").action(add);
const rm = program.command("rm");
rm.argument("<id>", "which").requiredOption("--why <text>", "the reason");
rm.action(remove);
program.parse();
"""


def test_the_commands_of_commander_are_read() -> None:
    """In a chain and by a variable; the arguments of a chain in their order, the program's options for each."""
    derivation = derived(COMMANDER, "t.js")

    assert derivation.complete
    assert branches(derivation) == [
        (["quiet", "command", "name", "tags", "force"], ["command", "name"]),
        (["quiet", "command", "id", "why"], ["command", "id", "why"]),
    ]
    line = CommandLine.from_dict(derivation.document["run"]["command_line"])
    assert to_argv(line, {"quiet": True, "command": "rm", "id": "5", "why": "old"}) == [
        "--quiet",
        "rm",
        "--why",
        "old",
        "5",
    ]


def test_positional_arguments_of_a_chain_keep_their_order() -> None:
    """The syntax tree has the last call of a chain outermost."""
    source = 'const { program } = require("commander");\nprogram.argument("<file>").argument("[out]").parse();\n'

    assert list(derived(source, "t.js").document["input"]["properties"]) == ["file", "out"]


@pytest.mark.parametrize(
    "call",
    ["program.addCommand(other);", 'program.command("a", "run a-program");', 'program.command("a").command("b");'],
)
def test_other_commands_of_commander_leave_one_list_of_words(call: str) -> None:
    """A command made elsewhere, one that is another program, and a command of a command."""
    source = f'const {{ program }} = require("commander");\nprogram.command("x <y>");\n{call}\nprogram.parse();\n'

    assert list(derived(source, "t.js").document["input"]["properties"]) == ["args"]


YARGS = """
const yargs = require("yargs/yargs");
yargs(process.argv.slice(2))
  .option("v", { type: "boolean" })
  .command("get <url> [out]", "fetch",
    y => y.positional("url", { describe: "where" }).option("n", { type: "number" }), go)
  .command({ command: "put <file..>", describe: "send",
    builder: { to: { type: "string", demandOption: true } }, handler: go })
  .demandCommand(1).parse();
"""


def test_the_commands_of_yargs_are_read() -> None:
    """With a function, or an object, that declares the options of the command."""
    derivation = derived(YARGS, "t.js")

    assert derivation.complete
    assert sorted(branches(derivation)) == [
        (["v", "command", "file", "to"], ["command", "file", "to"]),
        (["v", "command", "url", "out", "n"], ["command", "url"]),
    ]
    get = next(each for each in derivation.document["input"]["oneOf"] if "url" in each["properties"])
    assert get["properties"]["url"] == {"type": "string", "description": "where"}


DOCOPT = '''"""Sync things.

Usage:
    sync.py [options] SOURCE DEST
    sync.py --version

Options:
    -n, --dry-run          Do nothing.
    -r RATE --rate=RATE    The rate [default: 5].
    -h --help              Show this.
"""
from docopt import docopt
print(docopt(__doc__))
'''


def test_the_usage_text_of_docopt_is_its_declaration() -> None:
    """``[options]`` are those that are described below, with their defaults."""
    schema = derived(DOCOPT, "sync.py").document["input"]

    assert schema["properties"] == {
        "dry_run": {"type": "boolean", "default": False, "description": "Do nothing."},
        "rate": {"type": "string", "default": "5", "description": "The rate."},
        "source": {"type": "string"},
        "dest": {"type": "string"},
    }
    assert schema["required"] == ["source", "dest"]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ("x.py ship new <name>...\n  x.py ship move <name> <x> [--speed=<kn>]", ["command", "subcommand"]),
        ("x.py FILE...", ["file"]),
        ("x.py [--top N] FILE", ["args"]),
        ("x.py [--top] FILE [N]", ["top", "file", "n"]),
        ("x.py [<prefix>] <file>", ["args"]),
        ("x.py (<id> | --all)", ["args"]),
        ("x.py [-hso FILE] <x>", ["args"]),
        ("x.py add <x>\n  x.py add <x> <y>", ["args"]),
    ],
)
def test_a_usage_of_docopt_that_is_not_plain_leaves_one_list_of_words(usage: str, expected: list[str]) -> None:
    """Alternatives are a grammar of their own; so is an optional word before one that must be there."""
    source = f'DOC = """Usage:\n  {usage}\n"""\nimport docopt\nprint(docopt.docopt(DOC))\n'
    schema = derived(source, "x.py").document["input"]

    names = dict.fromkeys(name for each in schema.get("oneOf", [schema]) for name in each["properties"])
    assert list(names)[: len(expected)] == expected


@pytest.mark.parametrize(
    "start", ["super().__init__(usage='%prog [options]')", "OptionParser.__init__(self, usage='%prog [options]')"]
)
def test_a_parser_that_is_a_class_of_the_script_is_read(start: str) -> None:
    """Also where it calls the method of the class above by its name."""
    source = (
        f"from optparse import OptionParser\nclass Mine(OptionParser):\n    def __init__(self):\n        {start}\n"
        "        self.add_option('--color', default='red', help='the color')\n"
        "options, args = Mine().parse_args()\nprint(options.color)\n"
    )

    found = derived(source, "x.py").document["input"]["properties"]["color"]
    assert found == {"type": "string", "default": "red", "description": "the color"}


NODE: list[tuple[str, dict[str, Any], list[str]]] = [
    (
        'const f = process.argv[2];\nif (typeof f === "undefined") process.exit(1);\nconsole.log(f);\n',
        {"f": "string"},
        ["f"],
    ),
    (
        'const q = process.argv.slice(2).join(" ");\nif (!q) process.exit(1);\nconsole.log(q);\n',
        {"text": "string"},
        ["text"],
    ),
    (
        'const { values } = require("util").parseArgs({ options: { a: { type: "string" }, b: { type: "string" } } });\n'
        'for (const k of ["a", "b"]) { if (!values[k]) process.exit(1); }\n',
        {"a": "string", "b": "string"},
        ["a", "b"],
    ),
    (
        'const o = require("util").parseArgs({ allowPositionals: true, options: {} });\n'
        "const [from, to] = o.positionals;\nif (!from || !to) { process.exit(1); }\n",
        {"positionals": "array"},
        ["positionals"],
    ),
]


@pytest.mark.parametrize(("source", "types", "required"), NODE)
def test_what_a_node_script_refuses_to_run_without_is_required(
    source: str, types: dict[str, Any], required: list[str]
) -> None:
    """``typeof``, joined words, a loop over names, and words taken out by their place."""
    schema = derived(source, "x.mjs").document["input"]

    assert {name: each["type"] for name, each in schema["properties"].items()} == types
    assert schema["required"] == required


@pytest.mark.parametrize(
    "source",
    [
        'import sys\nq = " ".join(sys.argv[1:]).strip()\nif not q:\n    sys.exit("Usage: x.py <q>")\nprint(q)\n',
        "import re, sys\nq = sys.argv[1] if len(sys.argv) > 1 else ''\nif not re.match(r'^\\d+$', q):\n"
        '    sys.exit("Usage: x.py <q>")\nprint(q)\n',
    ],
)
def test_a_word_is_required_where_an_empty_text_is_refused(source: str) -> None:
    """Words that are joined, and a pattern that an empty text does not match."""
    assert derived(source, "x.py").document["input"]["required"] == ["q"]


def test_a_method_of_the_class_above_may_be_called_by_its_name() -> None:
    """A parser that changes its options before it declares them."""
    source = (
        "import argparse\nclass Mine(argparse.ArgumentParser):\n    def __init__(self, usage):\n"
        "        argparse.ArgumentParser.__init__(self, usage=usage)\n    def add_argument(self, *args, **kw):\n"
        "        kw.pop('env', None)\n        argparse.ArgumentParser.add_argument(self, *args, **kw)\n"
        "parser = Mine('x')\nparser.add_argument('--depth', env='D')\nparser.parse_args()\n"
    )

    assert list(derived(source, "x.py").document["input"]["properties"]) == ["depth"]


def test_faults_that_are_collected_before_they_are_tested_are_named() -> None:
    """The contract does not claim that its least call passes."""
    source = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--a')\np.add_argument('--b')\n"
        "ns = p.parse_args()\nmissing = [n for n in ('a', 'b') if getattr(ns, n) is None]\n"
        "if missing:\n    p.error(' '.join(missing))\n"
    )

    assert [each.argument for each in derived(source, "x.py").unread] == ["missing"]


def test_a_default_function_of_none_requires_a_command() -> None:
    """``set_defaults(func=None)`` is there to be tested."""
    source = (
        "import argparse\np = argparse.ArgumentParser()\np.set_defaults(func=None)\ns = p.add_subparsers()\n"
        "s.add_parser('add').set_defaults(func=print)\na = p.parse_args()\nif a.func is None:\n    p.error('command')\n"
    )

    assert derived(source, "x.py").document["input"]["required"] == ["command"]
