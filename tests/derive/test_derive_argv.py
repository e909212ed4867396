"""Scripts that read ``sys.argv`` by hand: each is run on the words of its contract, and says what it was given."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from skillruntime.derive import Derivation, derive
from skillruntime.derive.command_line import CommandLine, to_argv
from skillruntime.errors import SkillInputError
from tests.derive.script_values import SCRIPTS


def derived(script: str) -> Derivation:
    """Return what is read of *script*."""
    derivation = derive((SCRIPTS / script).read_bytes(), path=f"scripts/{script}")
    assert derivation is not None
    return derivation


def run(script: str, arguments: dict[str, Any], directory: Path) -> str:
    """Return what *script* prints when it is called with *arguments*, which its contract accepts."""
    derivation = derived(script)
    assert derivation.complete, derivation.unread
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    words = to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted)
    command = [sys.executable, str(SCRIPTS / script), *words]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("s01_usage.py", {"input": "-i", "size": -3}, "-i -3 part"),
    ("s01_usage.py", {"input": "i", "size": 3, "prefix": "p q"}, "i 3 p q"),
    ("s02_places.py", {"first": 2.5, "second": "--x"}, "2.5 --x"),
    ("s03_flags.py", {"file": "-f", "level": "-1"}, "-f False -1"),
    ("s03_flags.py", {"file": "f", "fix": True}, "f True low"),
    ("s03_flags.py", {"file": "f", "fix": True, "level": "high"}, "f True high"),
    ("s09_exact_number.py", {"front_page": "a", "back_page": "-b"}, "a|-b"),
    ("s10_default_behind_or.py", {"tree": "oak"}, "oak autumn"),
    ("s10_default_behind_or.py", {"tree": "oak", "season": "-"}, "oak -"),
    ("s11_star_unpacked.py", {"target": "t"}, "t []"),
    ("s11_star_unpacked.py", {"target": "t", "sources": ["a", "--b"]}, "t ['a', '--b']"),
    ("s12_slice_unpacked.py", {"width": 2, "height": -3, "rate": 0.5}, "-6 0.5"),
    ("s13_choice.py", {"action": "open", "turns": 3}, "+++"),
    ("s13_choice.py", {"action": "shut"}, "-"),
    ("s14_commands.py", {"command": "add", "bird": "--list"}, "add --list 1"),
    ("s14_commands.py", {"command": "add", "bird": "wren", "count": 2}, "add wren 2"),
    ("s14_commands.py", {"command": "list"}, "list"),
    ("s14_commands.py", {"command": "drop", "bird": ["wren", "-tit"]}, "drop wren\ndrop -tit"),
    ("s15_table_of_functions.py", {"command": "bake", "cake": "-c"}, "bake -c"),
    ("s15_table_of_functions.py", {"command": "eat", "cake": "bake"}, "eat bake"),
    ("s16_matched.py", {"command": "measure", "path": "compare"}, "measure compare"),
    ("s16_matched.py", {"command": "compare", "left": "-", "right": "measure"}, "compare - measure"),
    ("s17_switch.py", {"drawer": "top"}, "top False False"),
    ("s17_switch.py", {"drawer": "-top", "dark": True}, "-top True False"),
    ("s17_switch.py", {"drawer": "top", "dark": True, "q": True}, "top True True"),
    ("s18_flag_with_value.py", {"page": "p"}, "p black 1"),
    ("s18_flag_with_value.py", {"page": "p", "ink": "-red", "copies": -2}, "p -red -2"),
    ("s19_filtered.py", {"herb": ["mint", "-dill"], "hang": True}, "mint False True\n-dill False True"),
    ("s20_index_error.py", {"name": "n", "size": 4}, "n 4 grey"),
    ("s20_index_error.py", {"name": "n", "size": 4, "colour": "red"}, "n 4 red"),
    ("s21_json.py", {"order": {"b": [1], "a": "x"}}, "[('a', 'x'), ('b', [1])]"),
    ("s22_joined.py", {"question": "why  not, $(now)?"}, "why  not, $(now)?"),
    ("s23_spread.py", {"shape": "disc"}, "disc red 3"),
    ("s23_spread.py", {"shape": "disc", "size": 5, "colour": "-"}, "disc - 5"),
    ("s24_required_flag.py", {"title": "--shelf", "shelf": "-d"}, "--shelf on -d"),
    ("s25_optional_choice.py", {}, "fast"),
    ("s25_optional_choice.py", {"mode": "slow"}, "slow"),
    ("s27_loop_by_hand.py", {}, "None False"),
    ("s27_loop_by_hand.py", {"name": "--loud", "loud": True}, "--loud True"),
    ("s33_copied_and_taken.py", {"greeting": "hi"}, "hi world False"),
    ("s33_copied_and_taken.py", {"greeting": "hi", "loud": True}, "hi world True"),
    ("s33_copied_and_taken.py", {"greeting": "hi", "name": "-you", "loud": True}, "hi -you True"),
    ("s35_same_word_twice.py", {"sources": ["a", "a", "-b"]}, "a\na\n-b"),
    ("s36_help_and_places.py", {"basket": "-b", "weight": 2}, "-b 2.0"),
    ("s36_help_and_places.py", {"basket": "b"}, "b 1.5"),
    ("s37_keyword_instead.py", {"number": "all"}, "everything"),
    ("s37_keyword_instead.py", {"number": "-7"}, "-7"),
    ("s38_getopt.py", {"herb": ["mint"]}, "grey False mint"),
    ("s38_getopt.py", {"herb": ["mint", "dill"], "colour": "-q", "quiet": True}, "-q True mint dill"),
    ("s39_attached.py", {"tree": "a=b"}, "a=b spring"),
    ("s39_attached.py", {"tree": "--oak", "season": "-"}, "--oak -"),
    ("s40_taken_out.py", {"bird": "wren"}, "wren None False"),
    ("s40_taken_out.py", {"bird": "wren", "nest": "-x", "loud": True}, "wren -x True"),
]

REFUSED: list[tuple[str, dict[str, Any]]] = [
    ("s03_flags.py", {"file": "--fix"}),
    ("s03_flags.py", {"file": "f", "level": "--fix"}),
    ("s09_exact_number.py", {"front_page": "a"}),
    ("s13_choice.py", {"action": "break"}),
    ("s13_choice.py", {}),
    ("s14_commands.py", {"command": "add"}),
    ("s14_commands.py", {"command": "list", "bird": "wren"}),
    ("s14_commands.py", {"command": "drop", "bird": []}),
    ("s15_table_of_functions.py", {"command": "throw", "cake": "c"}),
    ("s17_switch.py", {"drawer": "--dark"}),
    ("s19_filtered.py", {"herb": ["--slowly"]}),
    ("s21_json.py", {"order": "text"}),
    ("s24_required_flag.py", {"title": "t"}),
    ("s36_help_and_places.py", {"basket": "--help"}),
    ("s38_getopt.py", {"herb": []}),
    ("s38_getopt.py", {"herb": ["--colour"]}),
    ("s39_attached.py", {"season": "autumn"}),
    ("s40_taken_out.py", {"nest": "n"}),
]

UNREAD: list[tuple[str, str]] = [
    ("s04_by_hand.py", "options are taken apart by hand"),
    ("s26_last_word.py", "what a word means depends on how many there are"),
    ("s28_passed_on.py", "the words are passed on to subprocess.run"),
    ("s29_meaning_moves.py", "what a word means depends on how many there are"),
    ("s30_key_and_value.py", "options are taken apart by hand"),
    ("s31_flag_before_place.py", "a flag may be where a word is read by its position"),
    ("s32_only_some_numbers.py", "not every number of words is right"),
    ("s34_in_a_class.py", "sys.argv is used where the script cannot be followed"),
]


@pytest.mark.parametrize(("script", "arguments", "expected"), CALLS)
def test_the_script_gets_back_what_was_asked(
    script: str, arguments: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    """Every accepted value reaches the script in its place."""
    assert run(script, arguments, tmp_path) == expected


@pytest.mark.parametrize(("script", "arguments"), REFUSED)
def test_what_the_script_would_not_take_is_refused_before_it_runs(script: str, arguments: dict[str, Any]) -> None:
    """A word that is missing, no choice of the script's, or would be mistaken for one of its flags."""
    with pytest.raises(SkillInputError):
        derived(script).to_contract().accept(arguments, policy="strict")


@pytest.mark.parametrize(("script", "reason"), UNREAD)
def test_what_no_trace_decides_is_named_and_left_out(script: str, reason: str) -> None:
    """Skip rather than guess."""
    derivation = derived(script)

    assert [each.reason for each in derivation.unread] == [reason]
    assert list(derivation.document["input"]["properties"]) == ["args"]
    assert derivation.confidence == "low"


HEAD = "import os, subprocess, sys\n"
DOUBTFUL = [
    "args = sys.argv[1:]\nclass A:\n    def run(self):\n        print(args)\nprint(args[0])\nA().run()",
    "import atexit\nargs = sys.argv[1:]\ndef last():\n    os.system(args[1])\natexit.register(last)\nprint(args[0])",
    "def main(args):\n    def work():\n        subprocess.run(args)\n    start(work)\nmain(sys.argv[1:])",
    "if os.path.exists('x'):\n    sys.argv.pop(1)\nprint(sys.argv[1])",
    "args = sys.argv[1:]\nif os.path.exists('x'):\n    args.pop(0)\nprint(args[0])",
    "del sys.argv[1]\nprint(sys.argv[1])",
    "sys.argv = ['x', 'y']\nprint(sys.argv[1])",
    "sys.argv[1] = 'x'\nprint(sys.argv[1])",
    "sys.argv += ['y']\nprint(sys.argv[1])",
    "import unittest\nprint(sys.argv[1])\nunittest.main()",
    "for word in sys.argv[1:]:\n    if word.startswith('--size='):\n        print(word[7:])\n    print(word)",
    "print(sys.argv[int(os.environ['N'])])",
    "n = int(os.environ['N'])\nprint(sys.argv[n:])",
    "print(sys.argv[1])\nif sys.argv[1] == '-v':\n    print(sys.argv[2])",
    "if sys.argv[1] == 'a':\n    print(sys.argv[2])\nelse:\n    print('other')",
    "def get(words):\n    return words[1]\nprint(max([sys.argv], key=get))\nopen(sys.argv)",
]


@pytest.mark.parametrize("body", DOUBTFUL)
def test_words_that_cannot_be_followed_are_unread(body: str) -> None:
    """Changed under a condition, kept by a class, passed to a foreign function: nothing is invented."""
    derivation = derive(f"{HEAD}{body}\n", path="s.py")

    assert derivation is not None
    assert not derivation.complete
    assert list(derivation.document["input"]["properties"]) == ["args"]


PLAIN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("print(int(sys.argv[1]))", {"argument_1": {"type": "integer"}}, ["argument_1"]),
    (
        "try:\n    n = int(sys.argv[1])\nexcept ValueError:\n    n = len(sys.argv[1])\nprint(n)",
        {"n": {"type": "string"}},
        ["n"],
    ),
    ("if sys.argv[1].isdigit():\n    print(int(sys.argv[1]))", {"argument_1": {"type": "string"}}, ["argument_1"]),
    (
        "from pathlib import Path\nhome = Path(sys.argv[1]) if len(sys.argv) > 1 else Path('/etc')\nprint(home)",
        {"home": {"type": "string", "format": "path"}},
        [],
    ),
    ("a = sys.argv[1] if len(sys.argv) > 1 else os.getcwd()\nprint(a.x)", {"argument_1": {"type": "string"}}, []),
    (
        "size = '3'\nif len(sys.argv) > 1:\n    size = sys.argv[1]\nsize = int(size)\nprint(size)",
        {"size": {"type": "integer"}},
        [],
    ),
    ("from sys import argv\nname = argv[1]\nprint(name)", {"name": {"type": "string"}}, ["name"]),
    (
        "if len(sys.argv) < 2:\n    print('Please give a name')\n    sys.exit()\nname = sys.argv[1]\nprint(name)",
        {"name": {"type": "string"}},
        ["name"],
    ),
    ("if '-v' in sys.argv:\n    print('loud')", {"v": {"type": "boolean", "default": False}}, []),
    ("print(os.path.basename(sys.argv[0]))", {}, []),
]


@pytest.mark.parametrize(("body", "expected", "required"), PLAIN)
def test_a_type_or_a_default_is_stated_only_where_it_is_certain(
    body: str, expected: dict[str, Any], required: list[str]
) -> None:
    """A conversion that may fail, or is made under a condition, leaves text; a computed default is the script's own."""
    derivation = derive(f"{HEAD}{body}\n", path="s.py")

    assert derivation is not None
    assert derivation.complete, derivation.unread
    assert derivation.document["input"]["properties"] == expected
    assert derivation.document["input"].get("required", []) == required


COSTLY = [
    "while True:\n    print(sys.argv[1])",
    "def f(words):\n    return f(words) or f(words)\nf(sys.argv)",
    "def f(word):\n    f(word)\n    f(word)\nf(sys.argv[1])",
    "for a in range(40):\n    for b in range(40):\n        for c in range(40):\n            print(sys.argv[a])",
    "x = sys.argv[1:]\nfor i in range(60):\n    x = x + x\nprint(x)",
    "x = sys.argv[1:]\nwhile x:\n    x = x + ['a']\nprint(x)",
    "print(sys.argv[999999999])",
    "print(sys.argv[1:] * 10 ** 9)",
    "n = 10 ** 10 ** 10\nprint(sys.argv[n])",
    "if len(sys.argv) > 10 ** 9:\n    print(sys.argv[1])",
]


@pytest.mark.parametrize("hostile", COSTLY)
def test_a_hostile_script_costs_few_steps(hostile: str) -> None:
    """The traces of a script have a limit of steps together, and lists of words one of length."""
    assert derive(f"{HEAD}{hostile}\n", path="s.py") is not None
