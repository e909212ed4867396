"""What the fuzz gives to public functions directly: schemas and calls of every kind,
YAML with tags, scripts put together from pieces, versions, and two contracts to
compare.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from skillruntime.adapters.tool_formats import to_gemini, to_mcp, to_openai
from skillruntime.compatibility import compare, suggest_migration
from skillruntime.contract import (
    Contract,
    Repairer,
    Schema,
    VersionRange,
    check_document,
    check_skill_compatibility,
    lint_contract,
    repair,
)
from skillruntime.derive import CommandLine, derive, to_argv
from skillruntime.errors import SkillRuntimeError
from skillruntime.tokens import count_tools
from tests.catalog.parts import YamlFault, fix, lint, load_yaml, read_frontmatter
from tests.contract.generated import (
    DEFINITIONS,
    KEY_ERRORS,
    LOOKALIKES,
    VALUE_ERRORS,
    make_object,
    make_schema,
    make_value,
    places,
    replaced,
)

__all__ = ["FUNCTIONS"]

Make = Callable[[random.Random], Any]
Attempt = Callable[[Any], bool]

_TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
_TEXTS = [*LOOKALIKES, '[["a"]]', '[{"a": 1}]', "a" * 300, "\0", "\ud800", "é"]
_SCALARS: list[Any] = [None, True, False, 0, -1, 2**63, 1e308, 1.5, -0.0, 10**400]


def _any_value(rng: random.Random, depth: int = 0) -> Any:
    """Return any JSON value: a text that looks like one, a container, a scalar."""
    kind = rng.random()
    if kind < 0.35 or depth > 3:
        return rng.choice(_TEXTS)
    if kind < 0.55:
        return rng.choice(_SCALARS)
    size = rng.randint(0, 3)
    if kind < 0.8:
        return [_any_value(rng, depth + 1) for _ in range(size)]
    keys = ["a", "b", "city", "Limit", "arguments", "name", "type", "value", "", "$ref"]
    return {rng.choice(keys): _any_value(rng, depth + 1) for _ in range(size)}


def _any_schema(rng: random.Random, depth: int = 0) -> Any:
    """Return a schema whose keywords are chosen without regard to one another."""
    if depth > 2 or rng.random() < 0.05:
        return rng.choice([True, False, {}, {"type": "string"}, {"$ref": "#"}])
    if rng.random() < 0.3:
        return make_schema(rng, depth)
    schema: dict[str, Any] = {}
    for keyword in rng.sample(sorted(_KEYWORDS), rng.randint(1, 4)):
        schema[keyword] = _KEYWORDS[keyword](rng, depth + 1)
    if rng.random() < 0.03:
        schema[rng.choice(sorted(_KEYWORDS))] = _any_value(rng)
    return schema


def _schemas(rng: random.Random, depth: int) -> list[Any]:
    return [_any_schema(rng, depth) for _ in range(rng.randint(1, 3))]


def _named_schemas(rng: random.Random, depth: int) -> dict[str, Any]:
    names = ["a", "b", "city", "Limit", "max_items", "arguments"]
    chosen = rng.sample(names, rng.randint(0, 3))
    return {name: _any_schema(rng, depth) for name in chosen}


def _types(rng: random.Random, depth: int) -> Any:
    if rng.random() < 0.5:
        return rng.choice(_TYPES)
    return rng.sample(_TYPES, rng.randint(1, 3))


def _small(rng: random.Random, depth: int) -> Any:
    return rng.choice([0, 1, 2, 3, 5.0, 2**70])


_KEYWORDS: dict[str, Callable[[random.Random, int], Any]] = {
    "type": _types,
    "enum": lambda rng, depth: [_any_value(rng, 2) for _ in range(rng.randint(1, 3))],
    "const": lambda rng, depth: _any_value(rng, 2),
    "default": lambda rng, depth: _any_value(rng, 2),
    "properties": _named_schemas,
    "required": lambda rng, depth: rng.sample(["a", "b", "city"], rng.randint(0, 2)),
    "additionalProperties": _any_schema,
    "patternProperties": lambda rng, depth: {"^a": _any_schema(rng, depth)},
    "propertyNames": _any_schema,
    "dependentRequired": lambda rng, depth: {"a": ["b"]},
    "items": _any_schema,
    "prefixItems": _schemas,
    "contains": _any_schema,
    "anyOf": _schemas,
    "oneOf": _schemas,
    "allOf": _schemas,
    "not": _any_schema,
    "if": _any_schema,
    "then": _any_schema,
    "minimum": _small,
    "exclusiveMaximum": _small,
    "multipleOf": lambda rng, depth: rng.choice([1, 2, 0.1, 1e-300, 2**70]),
    "minItems": _small,
    "maxItems": _small,
    "uniqueItems": lambda rng, depth: True,
    "minLength": _small,
    "maxLength": _small,
    "minProperties": _small,
    "pattern": lambda rng, depth: rng.choice(["^a", "(?=a)", "[", r"\d+", "^$"]),
    "format": lambda rng, depth: rng.choice(["date", "path", "uri", "email", "x"]),
    "unevaluatedProperties": _any_schema,
    "$ref": lambda rng, depth: rng.choice(["#", "#/$defs/tree", "#/nope", "x#"]),
}


def _schema_and_value(rng: random.Random) -> tuple[Any, Any]:
    """Return a schema, and a value for it, in which something is often wrong."""
    if rng.random() < 0.5:
        schema = _any_schema(rng)
        if isinstance(schema, dict):
            schema.setdefault("$defs", DEFINITIONS)
        value = _any_value(rng)
        if rng.random() < 0.5:
            value = {rng.choice(["a", "city"]): value, "b": _any_value(rng)}
        return schema, value
    schema = {**make_object(rng), "$defs": DEFINITIONS}
    value = make_value(rng, schema, DEFINITIONS)
    for _ in range(rng.randint(1, 3)):
        path = rng.choice(list(places(value)))
        if not path:
            continue
        error = VALUE_ERRORS[rng.choice(sorted(VALUE_ERRORS))]
        with suppress(LookupError, TypeError, ValueError):  # it does not apply here
            value = replaced(value, path, error(rng, _at(value, path)))
    if isinstance(value, dict) and value and rng.random() < 0.3:
        key = rng.choice(sorted(value))
        wrong = KEY_ERRORS[rng.choice(sorted(KEY_ERRORS))](key)
        value[wrong] = value.pop(key)
    return schema, value


def _at(value: Any, path: Any) -> Any:
    for part in path:
        value = value[part]
    return value


def _written(rng: random.Random, value: Any) -> Any:
    """Return *value* as a model may send it: as it is, or as a text."""
    kind = rng.random()
    if kind < 0.4:
        return value
    if kind < 0.5:
        return repr(value)
    with suppress(ValueError):  # an integer of too many digits
        text = json.dumps(value)
        if kind < 0.6:
            return json.dumps(text)
        if kind < 0.7:
            at = rng.randrange(len(text) + 1)
            return text[:at] + rng.choice(["", ",", "'", "<", "\n"]) + text[at + 1 :]
        return text
    return value


def _call(rng: random.Random) -> tuple[Any, Any, Any]:
    schema, value = _schema_and_value(rng)
    policy = rng.choice([None, None, "strict", "lenient"])
    return schema, _written(rng, value), policy


def _accept(call: tuple[Any, Any, Any]) -> bool:
    schema, sent, policy = call
    contract = Contract.from_dict({"input": schema, "output": schema}, name="tool")
    with suppress(SkillRuntimeError):
        contract.accept(sent, policy=policy)
    contract.check(sent)
    return True


def _repair(call: tuple[Any, Any, Any]) -> bool:
    schema, sent, policy = call
    with suppress(SkillRuntimeError):
        repair(sent, schema, name="tool", policy=policy)
    if not isinstance(schema, dict):
        return False
    tool = {"name": "tool", "description": "A tool.", "parameters": schema}
    with suppress(SkillRuntimeError):
        Repairer([tool]).accept("tool", sent)
    return True


def _describe(call: tuple[Any, Any, Any]) -> bool:
    schema, sent, _ = call
    document = {"name": "tool", "input": schema}
    check_document(document, path="contract.json")
    compiled = Schema(schema)
    # It takes JSON, and half of a surrogate pair is not JSON: `accept` and `check` look
    # for it.
    with suppress(UnicodeEncodeError):
        compiled.is_valid(sent)
    contract = Contract.from_dict(document)
    lint_contract(document, path="contract.json")
    tools = [to_openai(contract, strict="auto"), to_gemini(contract), to_mcp(contract)]
    json.dumps(tools)
    count_tools(tools[:1])
    return True


def _two_schemas(rng: random.Random) -> tuple[Any, Any]:
    make = rng.choice([_any_schema, make_object])
    old, new = make(rng), make(rng)
    if rng.random() < 0.5 and isinstance(old, dict):
        new = {**old, rng.choice(sorted(_KEYWORDS)): _any_schema(rng, 1)}
    return old, new


def _compare(schemas: tuple[Any, Any]) -> bool:
    documents = []
    for number, schema in enumerate(schemas):
        if isinstance(schema, dict):
            schema = {"$defs": DEFINITIONS, **schema}
        documents.append({"name": "a", "version": f"{number + 1}.0.0", "input": schema})
    verdict = compare(*documents)
    suggest_migration(*documents, verdict)
    return True


_YAML_PIECES = [
    "name: pdf\n",
    "description: Use when: a PDF comes\n",
    "metadata:\n  version: 1.10\n",
    "k: ",
    "- ",
    "? ",
    ": ",
    "  ",
    "\n",
    "\t",
    "{a: 1, ",
    "[",
    "]",
    "}",
    "&a ",
    "*a",
    "<<: ",
    "|\n  x\n",
    ">-\n  x\n",
    "'",
    '"',
    "#",
    "---\n",
    "...\n",
    "%YAML 1.2\n",
    "!!bool ",
    "!!timestamp ",
    "!!int ",
    "!!float ",
    "!!null ",
    "!!binary ",
    "!!set ",
    "!!omap ",
    "!!pairs ",
    "!!map ",
    "!!seq ",
    "!!str ",
    "!!merge ",
    "!!value ",
    "!x ",
    "!<tag:yaml.org,2002:int> ",
    "!!python/object:os.system ",
    "2024-02-31",
    "2024-01-01T00:00:00+99:99",
    "0001-01-01 00:00:00 +23:59",
    "1:2:3",
    "0x",
    "0b1",
    "_",
    "1_0",
    ".inf",
    ".nan",
    "=",
    "yes",
    "~",
    "9" * 5_000,
    "é",
    "\x85",
    "\u2028",
    "\ufeff",
    "\ud800",
    "\x00",
    "\U0001f600",
]


_YAML_SCALARS = [
    "x",
    '""',
    "'a'",
    "1.10",
    "yes",
    "~",
    "_",
    "2024-02-28",
    "[a]",
    "{a: 1}",
]


def _yaml(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.4:
        return "".join(rng.choices(_YAML_PIECES, k=rng.randint(1, 14)))
    if kind < 0.6:
        return f"k: {rng.choice(_YAML_PIECES)}{rng.choice(_YAML_PIECES)}"
    lines = []
    for number in range(rng.randint(1, 4)):
        value = rng.choice(_YAML_SCALARS)
        if rng.random() < 0.2:
            value = rng.choice(_YAML_PIECES) + value
        lines.append(f"k{number}: {value}\n")
    return "".join(lines)


def _read_yaml(text: str) -> bool:
    data = f"---\n{text}\n---\nBody.\n".encode("utf-8", "surrogatepass")
    read_frontmatter(data)
    lint(data, "pdf")
    fix(data, "pdf")
    try:
        load_yaml(text)
    except YamlFault:
        return False
    return True


_PYTHON_PIECES = [
    "import argparse, sys\n",
    "import sys\n",
    "import click\n",
    "import typer\n",
    "p = argparse.ArgumentParser()\n",
    "p = argparse.ArgumentParser(description=__doc__, prefix_chars='+')\n",
    "s = p.add_subparsers(dest='c')\n",
    "q = s.add_parser('x')\n",
    "g = p.add_mutually_exclusive_group(required=True)\n",
    "p.add_argument('a')\n",
    "p.add_argument('--b', type=int, default=3)\n",
    "p.add_argument('--c', choices=range(1, 5, 0))\n",
    "p.add_argument('--c', choices=range(5, 1, -1))\n",
    "p.add_argument('--c', choices=range(10**12))\n",
    "p.add_argument('--c', choices=[1, 'a', None])\n",
    "p.add_argument('d', nargs='*')\n",
    "p.add_argument('e', nargs=-1)\n",
    "p.add_argument('f', nargs=10**9)\n",
    "p.add_argument()\n",
    "p.add_argument('')\n",
    "p.add_argument('-')\n",
    "p.add_argument('--')\n",
    "p.add_argument(*names, **options)\n",
    "p.add_argument('--g', action='store_const', const=1 / 0)\n",
    "p.add_argument('--h', default=1 << 10**9)\n",
    "p.add_argument('--i', default='x' * 10**10)\n",
    "p.add_argument('--j', default=[0] * 10**10)\n",
    "p.add_argument('--k', default=9 ** 9 ** 9)\n",
    "p.add_argument('--l', default='%d' % 'x')\n",
    "p.add_argument('--m', default='{}'.format())\n",
    "p.add_argument('--n', default=int('x'))\n",
    "p.add_argument('--o', default={}['x'])\n",
    "p.add_argument('--p', default=[][0])\n",
    "p.add_argument('--q', default='a'[5:1:0])\n",
    "g.add_argument('--r', action='store_true')\n",
    "q.add_argument('y', type=float)\n",
    "if len() > 3:\n    pass\n",
    "if len(sys.argv) > 3:\n    pass\n",
    "if len(sys.argv, 1) < 2:\n    sys.exit(1)\n",
    "a = sys.argv[1]\n",
    "a, b = sys.argv[1:]\n",
    "a = sys.argv[1:][0]\n",
    "a = sys.argv[-1]\n",
    "n = int(sys.argv[1]) if len(sys.argv) > 1 else 3\n",
    "for x in sys.argv[1::0]:\n    pass\n",
    "X = [1, 2, 3]\n",
    "Y = dict(zip(X))\n",
    "Z = sorted()\n",
    "W = max()\n",
    "V = ''.join(1)\n",
    "U = list(range(0, 9, 0))\n",
    "T = [i for i in range(10**12)]\n",
    "S = tuple(enumerate())\n",
    "R = str.split()\n",
    "def f(a, *b, c=1, **d):\n    return a\n",
    "@click.command()\n@click.option('--n', type=click.Choice())\ndef main(n):\n    0\n",
    "@click.command()\n@click.argument('n', nargs=())\ndef main(n):\n    0\n",
    "@click.option()\ndef other():\n    0\n",
    "def run(n: int = typer.Option()):\n    0\ntyper.run(run)\n",
    "args = p.parse_args()\n",
    "args = p.parse_args(())\n",
    "opts, rest = getopt.getopt(sys.argv[1:], 'a:b', ['c=', ''])\n",
    '"""usage: x.py [[[-a A] <b> ...\n\nOptions:\n  --c N  [default: 3]\n"""\n',
    "print(f'usage: {sys.argv[0]} FILE [OUT]')\n",
    "if __name__ == '__main__':\n    main()\n",
]
_SHELL_PIECES = [
    "#!/bin/bash\n",
    "# Usage: x.sh [[[-a A] FILE\n",
    'while getopts ":a:b" o; do\n',
    "case $1 in\n",
    "  -a) A=$2; shift 2;;\n",
    "  --b|-b) B=1; shift;;\n",
    "  --c=*) C=${1#*=};;\n",
    "  *) exit 1;;\n",
    "esac\n",
    "done\n",
    "while [ $# -gt 0 ]; do\n",
    "if [ $# -lt 2 ]; then\n",
    "exit 1\nfi\n",
    'FILE="${1:?usage}"\n',
    "OUT=${2:-out.txt}\n",
    "cat <<EOF\nUsage: $0 FILE\nEOF\n",
    "shift\n",
    "${",
    "$(",
    "'",
]
_NODE_PIECES = [
    "const { parseArgs } = require('util');\n",
    "const a = process.argv.slice(2);\n",
    "const [x, y] = process.argv.slice(2);\n",
    "const { values } = parseArgs({ options: {\n",
    "  a: { type: 'string', short: 'a', default: 'x' },\n",
    "  b: { type: 'boolean' },\n",
    "} });\n",
    "if (a.length < 2) {\n  console.error('Usage: x.js FILE'); process.exit(1);\n}\n",
    "program.option('-p, --port <n>', 'port', parseInt);\n",
    "yargs.option('z', { choices: [1, 2] });\n",
    "`${",
    "/*",
    "{",
    "'",
]
_KINDS = [
    ("run.py", _PYTHON_PIECES),
    ("run.py", _PYTHON_PIECES),
    ("run.sh", _SHELL_PIECES),
    ("run.js", _NODE_PIECES),
]


def _script(rng: random.Random) -> tuple[str, str]:
    name, pieces = rng.choice(_KINDS)
    chosen = rng.choices(pieces, k=rng.randint(1, 9))
    if rng.random() < 0.6:
        # Most scripts have these two first.
        chosen = [*pieces[:2], *chosen]
        if name == "run.py":
            chosen = [pieces[0], pieces[4], *chosen]
    return name, "".join(chosen)


def _derive(script: tuple[str, str]) -> bool:
    name, source = script
    derivation = derive(source, path=f"scripts/{name}")
    if derivation is None:
        return False
    contract = derivation.to_contract("sample/run")
    with suppress(SkillRuntimeError):
        accepted = contract.accept({"a": "1", "args": ["x", "y"]})
        line = CommandLine.from_dict(contract.run["command_line"])
        to_argv(line, accepted.arguments)
    return True


_VERSION_PIECES = ["1", "0", "2.0", ".", "-", "+", "^", "~", ">=", "<", "||", " ", "x"]
_VERSION_PIECES += ["*", "v", "alpha", "01", "9" * 5_000, "²", "1.2.3", ",", "=", "\n"]


def _versions(rng: random.Random) -> tuple[str, str]:
    made = []
    for _ in range(2):
        made.append("".join(rng.choices(_VERSION_PIECES, k=rng.randint(1, 6))))
    return made[0], made[1]


def _compare_versions(texts: tuple[str, str]) -> bool:
    required, current = texts
    # Both document ValueError: the first is the contract document's own function.
    with suppress(ValueError):
        check_skill_compatibility(required, current)
    with suppress(ValueError):
        VersionRange.parse(required)
    document = {"version": current, "requires": {"runtime": required}}
    Contract.from_dict(document, name="a").accept({}, version=current)
    return True


FUNCTIONS: dict[str, tuple[Make, Attempt]] = {
    "accept": (_call, _accept),
    "repair": (_call, _repair),
    "definitions": (_call, _describe),
    "compare": (_two_schemas, _compare),
    "yaml": (_yaml, _read_yaml),
    "pieces": (_script, _derive),
    "versions": (_versions, _compare_versions),
}
"""The targets by name: what makes an input, and what reads it."""
