"""Sound inputs that the fuzz changes: a script of every kind that is read, and
contracts of every kind of schema.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CALLS", "MIGRATED", "SCRIPTS"]

SCRIPTS: tuple[tuple[str, str], ...] = (
    (
        "run.py",
        """\
import argparse, json, os, sys
MODES = ['a', 'b']
def build():
    p = argparse.ArgumentParser(prog='x')
    p.add_argument('path', nargs='+', type=int, help='The %(prog)s path')
    g = p.add_mutually_exclusive_group()
    g.add_argument('--mode', choices=MODES, default=MODES[0])
    sub = p.add_subparsers(dest='command')
    one = sub.add_parser('one')
    one.add_argument('-n', action='store_true')
    return p
for name in ('a', 'b'):
    locals()[name] = 1
if __name__ == '__main__':
    args = build().parse_args()
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    print(json.dumps(vars(args)))
""",
    ),
    (
        "tool.py",
        """\
# /// script
# requires-python = ">=3.9"
# dependencies = ["rich>=13", "click"]
# ///
import argparse
from dataclasses import dataclass, field
from pathlib import Path
@dataclass
class Config:
    size: int = 3
    names: list[str] = field(default_factory=list)
def positive(text):
    value = int(text)
    if value <= 0:
        raise argparse.ArgumentTypeError('must be positive')
    return value
common = argparse.ArgumentParser(add_help=False)
common.add_argument('-v', '--verbose', action='count', default=0)
parser = argparse.ArgumentParser(
    parents=[common], description=__doc__, epilog='tool.py add --size 3 a b')
parser.add_argument('--version', action='version', version='%(prog)s 1.0')
commands = parser.add_subparsers(dest='cmd', required=True)
add = commands.add_parser('add', aliases=['a'], parents=[common])
add.add_argument('names', nargs='*', metavar='NAME')
add.add_argument('--size', type=positive, default=Config.size, required=False)
add.add_argument('--pair', nargs=2, type=float, action='append')
add.add_argument('--no-color', dest='color', action='store_false')
add.add_argument('--flag', action=argparse.BooleanOptionalAction, default=True)
add.set_defaults(func=lambda args: print(args))
for word, kind in {'left': int, 'right': str}.items():
    commands.add_parser(word).add_argument(f'--{word}', type=kind, choices=range(1, 5))
args, rest = parser.parse_known_args()
if args.cmd == 'add' and not args.names:
    parser.error('names are needed')
args.func(args)
""",
    ),
    (
        "old.py",
        """\
import optparse
def main():
    parser = optparse.OptionParser(usage='usage: %prog [options] file')
    parser.add_option('-f', '--file', dest='filename', help='write to FILE', metavar='FILE')
    parser.add_option('-q', action='store_false', dest='verbose', default=True)
    parser.add_option('-n', type='int', default=5)
    parser.add_option('--kind', type='choice', choices=['x', 'y'])
    options, args = parser.parse_args()
    if len(args) != 1:
        parser.error('incorrect number of arguments')
    print(options.filename, args[0])
main()
""",
    ),
    (
        "clicks.py",
        """\
import click
@click.group()
@click.option('--debug/--no-debug', default=False)
def cli(debug):
    '''Do things.'''
@cli.command('sync')
@click.argument('source', type=click.Path(exists=True))
@click.argument('targets', nargs=-1, required=True)
@click.option('-n', '--count', default=1, type=click.IntRange(0, 10), show_default=True)
@click.option('--mode', type=click.Choice(['fast', 'slow'], case_sensitive=False), envvar='MODE')
@click.option('--tag', multiple=True)
@click.option('--size', nargs=2, type=float)
@click.option('--force', is_flag=True, help='Overwrite.')
@click.option('--when', type=click.DateTime())
def sync(source, targets, count, mode, tag, size, force, when):
    if count > 5 and not force:
        raise click.UsageError('too many')
    click.echo(source)
if __name__ == '__main__':
    cli()
""",
    ),
    (
        "typed.py",
        """\
from enum import Enum
from typing import Annotated, Optional, List
import typer
class Mode(str, Enum):
    fast = 'fast'
    slow = 'slow'
app = typer.Typer(help='Typed.')
@app.command()
def add(name: str, count: Annotated[int, typer.Option('--count', '-c', min=1, max=9)] = 3,
        mode: Mode = Mode.fast, tags: Optional[List[str]] = typer.Option(None), force: bool = False,
        path: Annotated[str, typer.Argument(help='Where')] = '.'):
    '''Add one.'''
    print(name)
@app.command('drop')
def remove(ids: List[int]):
    print(ids)
if __name__ == '__main__':
    app()
""",
    ),
    (
        "stdin.py",
        """\
import json, sys
def main():
    data = json.load(sys.stdin)
    topics = data['topics']
    limit = int(data.get('limit', 10))
    mode = data.get('mode') or 'fast'
    if mode not in ('fast', 'slow'):
        raise ValueError('mode')
    options = data.get('options', {})
    for name, value in options.items():
        print(name, value)
    if 'dry' in data and data['dry']:
        return
    print(json.dumps({'count': len(topics), 'limit': limit, 'first': topics[0]['name'].upper()}))
main()
""",
    ),
    (
        "words.py",
        """\
import getopt, os, re, sys
USAGE = 'Usage: words.py <input> [output] [--limit N] [--verbose]'
def main(argv):
    if len(argv) < 2 or argv[1] in ('-h', '--help'):
        sys.exit(USAGE)
    source = argv[1]
    target = argv[2] if len(argv) > 2 else os.path.splitext(source)[0] + '.out'
    limit, verbose, i = 10, False, 3
    while i < len(argv):
        if argv[i] == '--limit':
            limit = int(argv[i + 1]); i += 2
        elif argv[i].startswith('--mode='):
            mode = argv[i].split('=', 1)[1]; i += 1
        elif argv[i] == '--verbose':
            verbose = True; i += 1
        else:
            print('unknown', argv[i], file=sys.stderr); sys.exit(2)
    match target:
        case 'a' | 'b':
            print(source)
        case _:
            print([x for x in re.findall('[a-z]+', source) if x][:limit])
try:
    main(sys.argv)
except (IndexError, ValueError) as error:
    sys.exit(1)
""",
    ),
    (
        "loop.js",
        """\
#!/usr/bin/env node
const fs = require('fs');
const args = process.argv.slice(2);
if (args.length < 1 || args.includes('--help')) {
  console.error('Usage: node loop.js <file> [--limit N] [--json]');
  process.exit(1);
}
const options = { limit: 10, json: false, tags: [] };
let file = null;
for (let i = 0; i < args.length; i++) {
  const arg = args[i];
  switch (arg) {
    case '--limit': case '-l': options.limit = parseInt(args[++i], 10); break;
    case '--json': options.json = true; break;
    case '--tag': options.tags.push(args[++i]); break;
    default:
      if (arg.startsWith('--mode=')) options.mode = arg.split('=')[1];
      else if (arg.startsWith('-')) { throw new Error(`unknown ${arg}`); }
      else file = file ?? arg;
  }
}
const idx = args.indexOf('--out');
const out = idx >= 0 ? args[idx + 1] : `${file}.txt`;
fs.writeFileSync(out, JSON.stringify(options, null, 2).replace(/["']/g, ''));
""",
    ),
    (
        "parse.mjs",
        """\
import { parseArgs } from 'node:util';
const { values, positionals } = parseArgs({
  args: process.argv.slice(2),
  options: {
    name: { type: 'string', short: 'n', default: 'x' },
    force: { type: 'boolean' },
    tag: { type: 'string', multiple: true },
  },
  allowPositionals: true,
});
if (!values.name) { console.error('name'); process.exit(2); }
const [first, second = 'b'] = positionals;
console.log(first, second, ...positionals);
""",
    ),
    (
        "mini.js",
        """\
const argv = require('minimist')(process.argv.slice(2), {
  string: ['name'], boolean: ['force'], alias: { n: 'name' }, default: { size: 3 } });
const url = argv._[0];
const retries = Number(argv.retries || 3);
if (!url) { console.log('Usage: mini.js <url>'); process.exit(1); }
console.log(argv.name, argv.force, argv['dry-run'], retries);
""",
    ),
    (
        "opts.sh",
        """\
#!/usr/bin/env bash
set -euo pipefail
usage() { cat <<EOF
Usage: $0 [-v] [-n COUNT] <file>
EOF
exit 1; }
count=3; verbose=0
while getopts ":vn:h" opt; do
  case "$opt" in
    v) verbose=1 ;;
    n) count="$OPTARG" ;;
    *) usage ;;
  esac
done
shift $((OPTIND - 1))
[[ $# -lt 1 ]] && usage
file="${1:?file}"
other="${2:-$(dirname "$file")/out}"
for each in "${@:3}"; do echo "$each"; done
if [ "$count" -gt 5 ]; then echo many >&2; fi
""",
    ),
    (
        "long.sh",
        """\
#!/bin/bash
# Usage: long.sh --name NAME [--mode fast|slow] [--dry-run]
MODE="fast"
DRY=false
while [[ $# -gt 0 ]]; do
  case $1 in
    -n|--name) NAME="$2"; shift 2 ;;
    --mode=*) MODE="${1#*=}"; shift ;;
    --mode) MODE=$2; shift; shift ;;
    --dry-run) DRY=true; shift ;;
    --) shift; break ;;
    -*) echo "Unknown option $1"; exit 1 ;;
    *) POSITIONAL+=("$1"); shift ;;
  esac
done
if [ -z "${NAME:-}" ]; then echo "Error: --name is required" >&2; exit 1; fi
curl -s "https://example.com/$NAME" | jq '.a' || true
""",
    ),
)

_PERSON = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": ["integer", "null"], "minimum": 0},
        "kind": {"enum": ["Adult", "child", 3, None]},
        "friends": {
            "type": "array",
            "items": {"$ref": "#/$defs/person"},
            "maxItems": 3,
        },
    },
    "additionalProperties": False,
}
CALLS: tuple[tuple[dict[str, Any], dict[str, Any]], ...] = (
    (
        {
            "type": "object",
            "$defs": {"person": _PERSON},
            "properties": {"person": {"$ref": "#/$defs/person"}},
        },
        {
            "person": {
                "name": "A",
                "age": 3,
                "kind": "Adult",
                "friends": [{"name": "B", "age": None}],
            }
        },
    ),
    (
        {
            "type": "object",
            "properties": {
                "value": {
                    "anyOf": [
                        {"type": "integer"},
                        {"type": "array", "items": {"type": "string"}},
                    ]
                },
                "shape": {
                    "oneOf": [
                        {
                            "type": "object",
                            "required": ["r"],
                            "properties": {
                                "t": {"const": "c"},
                                "r": {"type": "number"},
                            },
                        },
                        {
                            "type": "object",
                            "required": ["w"],
                            "properties": {
                                "t": {"const": "s"},
                                "w": {"type": "number"},
                            },
                        },
                    ]
                },
                "both": {
                    "allOf": [
                        {"type": "string"},
                        {"maxLength": 5},
                        {"not": {"const": "no"}},
                    ]
                },
            },
            "patternProperties": {"^x-": {"type": "boolean"}},
            "minProperties": 1,
        },
        {
            "value": ["a", "b"],
            "shape": {"t": "c", "r": 1.5},
            "both": "yes",
            "x-a": True,
        },
    ),
    (
        {
            "type": "object",
            "required": ["when", "amount"],
            "properties": {
                "when": {"type": "string", "format": "date-time"},
                "mail": {"type": "string", "format": "email"},
                "amount": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5},
                "map": {"type": "object", "additionalProperties": {"type": "integer"}},
                "pair": {
                    "type": "array",
                    "prefixItems": [{"type": "string"}, {"type": "integer"}],
                    "items": False,
                },
                "rows": {
                    "type": "array",
                    "items": {"type": "array", "items": {"type": "number"}},
                    "minItems": 1,
                },
                "flag": {"type": "boolean", "default": False},
                "camelCase": {"type": "string", "pattern": "^[a-z_]+$"},
            },
            "dependentRequired": {"mail": ["when"]},
            "if": {"properties": {"flag": {"const": True}}},
            "then": {"required": ["mail"]},
            "additionalProperties": False,
        },
        {
            "when": "2026-01-02T03:04:05Z",
            "mail": "a@example.com",
            "amount": 2.5,
            "map": {"a": 1, "b": 2},
            "pair": ["a", 1],
            "rows": [[1, 2], [3.5]],
            "flag": True,
            "camelCase": "abc",
        },
    ),
)

# A contract with a migration of each kind of step, and a call that was written for each
# older version.
MIGRATED: tuple[dict[str, Any], tuple[dict[str, Any], ...]] = (
    {
        "version": "4.0.0",
        "input": {
            "type": "object",
            "properties": {
                "topics": {"type": "array", "items": {"type": "string"}},
                "limit": {"type": "integer"},
                "options": {"type": "object"},
                "level": {"enum": ["minimal", "full"]},
                "point": {"type": "array", "items": {"type": "number"}},
                "start": {"type": "string"},
                "end": {"type": "string"},
                "minutes": {"type": "number"},
                "format": {"type": "string"},
                "title": {"type": "string"},
                "query": {"type": "string"},
            },
            "additionalProperties": False,
        },
        "migrations": [
            {
                "from": "1.x",
                "to": "2.0.0",
                "accepts": {
                    "required": ["topic"],
                    "properties": {"topic": {"type": "string"}},
                },
                "steps": [
                    {"wrap": "/topic"},
                    {"rename": {"from": "/topic", "to": "/topics"}},
                    {"convert": {"at": "/count", "from": "string", "to": "integer"}},
                    {"rename": {"from": "/count", "to": "/limit"}},
                    {
                        "map": {
                            "at": "/level",
                            "values": {"low": "minimal", "high": "full"},
                        }
                    },
                ],
            },
            {
                "from": "2.x",
                "to": "3.0.0",
                "accepts": {
                    "properties": {
                        "lat": {"type": "number"},
                        "range": {"type": "string"},
                    }
                },
                "steps": [
                    {"convert": {"at": "/hours", "factor": 60}},
                    {"move": {"from": "/hours", "to": "/minutes"}},
                    {"move": {"from": "/lang", "to": "/options/lang"}},
                ],
            },
            {
                "from": "3.x",
                "to": "4.0.0",
                "accepts": {"properties": {"old": {"type": "string"}}},
                "steps": [
                    {"drop": "/old"},
                    {"set_default": {"at": "/format", "value": "brief"}},
                    {"split": {"at": "/topics/*", "separator": ","}},
                    {"unwrap": "/query"},
                    {"move": {"from": "/extra/a", "to": "/a"}},
                ],
            },
        ],
    },
    (
        {"topic": "a", "count": "3", "level": "low"},
        {
            "lat": 1.5,
            "lon": 2,
            "range": "a..b",
            "hours": 2,
            "lang": "en",
            "style": "x",
            "query": "q",
        },
        {
            "old": "x",
            "topics": ["a,b"],
            "query": ["q"],
            "extra": {"limit": 3},
            "pair": ["a", "b"],
        },
        {"topics": ["a"], "limit": 3, "format": "full"},
    ),
)
