"""A shell script is followed on the calls of its contract, and its demands are those of the whole script."""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import Derivation, derive


def derived(source: str) -> Derivation:
    found = derive(f"#!/bin/bash\n{source}", path="x.sh")
    assert found is not None
    return found


OPTIONS = (
    "while [[ $# -gt 0 ]]; do\n  case $1 in\n    --a) A=$2; shift 2 ;;\n    --b) B=$2; shift 2 ;;\n"
    "    *) exit 1 ;;\n  esac\ndone\n"
)


@pytest.mark.parametrize(
    ("source", "required"),
    [
        ("case $# in\n  2) ;;\n  *) exit 64 ;;\nesac\na=$1; b=$2\necho $a $b\n", ["a", "b"]),
        ("(( $# )) || exit 2\nfor f; do echo $f; done\n", ["f"]),
        ('one() { local a=$1; [[ $a ]] || exit 1; }\nmain() { one "${1-}"; }\nmain "$@"\n', ["argument_1"]),
        ("set -u\necho $1 to $2\n", ["argument_1", "argument_2"]),
        ('argc=$#\n[ $argc -gt 0 ] || exit 1\necho "$1"\n', ["argument_1"]),
        ('ok=1\n[ -n "$1" ] || ok=0\n[ $ok = 1 ] || exit 1\necho $1\n', ["argument_1"]),
        ('IFS=: read -r h p <<< "${1:-}"\n[ -z "$h" ] && exit 1\necho $h $p\n', ["argument_1"]),
        ("if [ $# -eq 1 ]; then o=x\nelif [ $# -eq 2 ]; then o=$2\nelse exit 1\nfi\ni=$1\necho $i $o\n", ["i"]),
        ("if [ $# -gt 0 ]; then cat $1; else cat; fi\n", []),
        (OPTIONS + 'for v in A B; do\n  [ -z "${!v}" ] && exit 1\ndone\necho $A $B\n', ["a", "b"]),
        (OPTIONS + 'm=()\n[[ -z ${A:-} ]] && m+=(a)\nif (( ${#m[@]} )); then exit 1; fi\necho $A $B\n', ["a"]),
        (OPTIONS + 'need() { [ -n "${!1}" ] || exit 1; }\nneed B\necho $A $B\n', ["b"]),
        ("[ $# -eq 4 ] || exit 1\n" + OPTIONS + "echo $A $B\n", ["a", "b"]),
        ('T=$(getopt -o f: -- "$@")\neval set -- "$T"\nwhile true; do\n  case "$1" in\n'
         "    -f) file=$2; shift 2 ;;\n    --) shift; break ;;\n  esac\ndone\n[ -n \"$file\" ] || exit 2\n", ["f"]),
    ],
)  # fmt: skip
def test_what_the_script_demands_anywhere_is_required(source: str, required: list[str]) -> None:
    """In a function, by a number, over a list of names, behind ``getopt``; and nothing else is."""
    derivation = derived(source)

    assert derivation.complete
    assert derivation.document["input"].get("required", []) == required


@pytest.mark.parametrize(
    ("source", "schema"),
    [
        ("op=$1\n[[ $op != up && $op != down ]] && exit 1\necho $op\n", {"type": "string", "enum": ["up", "down"]}),
        ("op=$1\n[[ $op =~ ^v[0-9]+$ ]] || exit 1\necho $op\n", {"type": "string", "pattern": "^v[0-9]+$"}),
        ("op=$1\n[[ $op =~ ^[0-9]+$ ]] || exit 1\necho $op\n", {"type": "integer", "minimum": 0}),
    ],
)
def test_what_a_word_must_be_is_read(source: str, schema: dict[str, Any]) -> None:
    """Where the script refuses every other word."""
    assert derived(source).document["input"]["properties"]["op"] == schema


def test_the_first_word_chooses_among_functions() -> None:
    """``"cmd_$1"``, ``declare -f "$1"`` and ``case $1`` name the commands; each needs words of its own."""
    source = (
        "start() { echo ${1:?}; }\nstop() { echo; }\n"
        'if declare -f "$1" > /dev/null; then "$@"; else echo "Usage: x start|stop"; exit 1; fi\n'
    )

    derivation = derived(source)

    assert derivation.document["input"]["properties"]["command"]["enum"] == ["start", "stop"]
    assert [branch["required"] for branch in derivation.document["input"]["oneOf"]] == [
        ["command", "args"],
        ["command"],
    ]
    assert [each.argument for each in derivation.unread] == ["args"]


def test_one_flag_of_two_that_set_the_same_variable_is_a_choice() -> None:
    """``--fast|--slow) mode=${1#--}``: the flag itself is the value."""
    source = (
        "while [ $# -gt 0 ]; do\n  case $1 in\n    --fast|--slow) mode=${1#--}; shift ;;\n    *) exit 2 ;;\n  esac\n"
        'done\n[[ $mode ]] || exit 2\necho "$mode"\n'
    )

    schema = derived(source).document["input"]

    assert schema["properties"] == {"mode": {"enum": ["fast", "slow"]}}
    assert schema["required"] == ["mode"]


@pytest.mark.parametrize(
    "source",
    ["eval $1\n", "f() { f; }\nf $1\n", "while true; do echo $1; done\n", "source lib.sh\nmain $1\n", "if then $1\n"],
)
def test_a_script_that_cannot_be_followed_keeps_what_its_text_says(source: str) -> None:
    """Nothing is concluded from a script without end, or from one that runs what it is given."""
    assert derived(source).document["input"]["properties"]


def test_two_names_of_one_flag_are_not_a_choice() -> None:
    """``--instdir|--root) shift; ROOT=$1``: the value is the next word."""
    source = (
        "while [ $# -ne 0 ]; do\n  case $1 in\n  --instdir|--root)\n    shift\n    ROOT=$1\n    ;;\n  esac\n"
        '  shift\ndone\necho "$ROOT"\n'
    )

    assert list(derived(source).document["input"]["properties"]) == ["instdir"]


def test_a_loop_without_end_is_not_a_call() -> None:
    """``shift 2`` takes nothing where one word is left, so ``add`` needs a second one."""
    source = (
        "while [ $# -gt 0 ]; do\n  case $1 in\n    add|del) mode=$1; item=$2; shift 2 ;;\n    list) shift ;;\n"
        "    *) exit 1 ;;\n  esac\ndone\necho $mode $item\n"
    )

    branches = derived(source).document["input"]["oneOf"]

    assert [each["required"] for each in branches] == [["command", "args"], ["command", "args"], ["command"]]
