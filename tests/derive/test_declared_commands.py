"""Commands that commander, yargs and docopt declare, and parsers that are classes of the script's own."""

from __future__ import annotations

import pytest

from skillruntime.derive import Derivation, derive


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


def test_positional_arguments_of_a_chain_keep_their_order() -> None:
    """The syntax tree has the last call of a chain outermost."""
    source = 'const { program } = require("commander");\nprogram.argument("<file>").argument("[out]").parse();\n'

    assert list(derived(source, "t.js").document["input"]["properties"]) == ["file", "out"]


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


def test_a_default_function_of_none_requires_a_command() -> None:
    """``set_defaults(func=None)`` is there to be tested."""
    source = (
        "import argparse\np = argparse.ArgumentParser()\np.set_defaults(func=None)\ns = p.add_subparsers()\n"
        "s.add_parser('add').set_defaults(func=print)\na = p.parse_args()\nif a.func is None:\n    p.error('command')\n"
    )

    assert derived(source, "x.py").document["input"]["required"] == ["command"]
