"""Node scripts with minimist: what is declared to it, and the members that the script uses."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import CommandLine, derive, to_argv

DECLARED = """
const argv = require('minimist')(process.argv.slice(2), {
  string: ['name', 'tag'], boolean: 'force', alias: {n: 'name'}, default: {tag: 'latest', depth: 2, color: true},
});
if (!argv.name) { console.error('name?'); process.exit(1); }
console.log(JSON.stringify([argv.name, argv.tag, argv.force, argv.depth, argv.color]));
"""
USED = """
import minimist from 'minimist';
const args = minimist(process.argv.slice(2));
if (args.help) { console.log('help'); process.exit(0); }
console.log(args.port, args['dry-run']);
"""
WORDS = """
const minimist = require('minimist');
const argv = minimist(process.argv.slice(2), { boolean: ['quiet'], string: ['_'] });
if (argv._.length < 2 || !argv.out) throw new Error('too few');
console.log(JSON.stringify([argv.out, argv.quiet, argv._]));
"""
TAKEN_OUT = """
const parse = require("minimist");
const { width, _: files, verbose = false } = parse(process.argv.slice(2), { boolean: ["verbose"] });
console.log(width, files, verbose);
"""
PASSED_ON = """
const argv = require('minimist')(process.argv.slice(2), { string: 'a' });
run(argv);
"""
COMPUTED = """
const options = require('./options');
const argv = require('minimist')(process.argv.slice(2), options);
console.log(argv.a);
"""
EITHER = {"anyOf": [{"type": "string"}, {"const": True}]}


@pytest.mark.parametrize(
    ("script", "properties", "required", "unread"),
    [
        (
            DECLARED,
            {
                "name": {"type": "string"},
                "tag": {"type": "string", "default": "latest"},
                "force": {"type": "boolean"},
                "depth": {"type": "number", "default": 2},
                "color": {"type": "boolean", "default": True},
            },
            ["name"],
            [],
        ),
        (
            USED,
            {"port": EITHER, "dry_run": EITHER},
            [],
            [
                "--port: whether it takes a value is not declared",
                "--dry-run: whether it takes a value is not declared",
            ],
        ),
        (
            WORDS,
            {
                "quiet": {"type": "boolean"},
                "out": EITHER,
                "words": {"type": "array", "items": {"type": "string"}, "minItems": 2},
            },
            ["out", "words"],
            [
                "--out: whether it takes a value is not declared",
                "words: how many the script needs is not declared",
            ],
        ),
        (
            TAKEN_OUT,
            {
                "verbose": {"type": "boolean"},
                "width": EITHER,
                "words": {"type": "array", "items": {"type": "string"}},
            },
            [],
            [
                "--width: whether it takes a value is not declared",
                "words: how many the script needs is not declared",
            ],
        ),
        (PASSED_ON, {"a": {"type": "string"}}, [], ["arguments: what minimist returns is passed on"]),
    ],
)
def test_declared_and_used_members_are_read(
    script: str, properties: dict[str, Any], required: list[str], unread: list[str]
) -> None:
    """What is declared has its type; a member that is only used is an optional value, and is named as unread."""
    derivation = derive(script, path="scripts/tool.js")

    assert derivation is not None
    assert derivation.framework == "minimist"
    assert derivation.document["input"]["properties"] == properties
    assert derivation.document["input"].get("required", []) == required
    assert [str(each) for each in derivation.unread] == unread


def test_a_computed_declaration_is_passed_on_as_words() -> None:
    """Where the options cannot be read, the tool takes the words of the command line."""
    derivation = derive(COMPUTED, path="scripts/tool.js")

    assert derivation is not None
    assert list(derivation.document["input"]["properties"]) == ["args"]
    assert [str(each) for each in derivation.unread] == ["options: the call of minimist is computed"]


@pytest.mark.parametrize(
    ("script", "arguments", "words", "shown"),
    [
        (
            DECLARED,
            {"name": "-x", "tag": "1", "force": True, "depth": -3, "color": False},
            ["--name=-x", "--tag", "1", "--force", "--depth=-3", "--no-color"],
            '["-x","1",true,-3,false]',
        ),
        (
            WORDS,
            {"out": "--", "quiet": True, "words": ["true", "-v"]},
            ["--quiet", "--out=--", "--", "true", "-v"],
            '["--",true,["true","-v"]]',
        ),
        (WORDS, {"out": True, "words": ["a", "b"]}, ["--out", "--", "a", "b"], '[true,false,["a","b"]]'),
    ],
)
def test_the_words_mean_the_arguments(
    tmp_path: Path, script: str, arguments: dict[str, Any], words: list[str], shown: str
) -> None:
    """A value with a dash is attached, and ``--`` separates a switch from a word; minimist reads them so."""
    derivation = derive(script, path="scripts/tool.js")
    assert derivation is not None
    accepted = derivation.to_contract("a/tool").accept(arguments)

    made = to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted.arguments)

    assert made == words
    node = shutil.which("node")
    has_minimist = (
        node
        and not subprocess.run(
            [node, "-e", "require('minimist')"], capture_output=True, env=os.environ, timeout=60, check=False
        ).returncode
    )
    if node and has_minimist:
        path = tmp_path / "tool.cjs"
        path.write_text(script)
        run = subprocess.run([node, str(path), *made], capture_output=True, text=True, timeout=60, check=True)
        assert run.stdout.strip() == shown
