"""What one trace of a script says of command lines that are not traced."""

from __future__ import annotations

import ast

import pytest

from skillruntime.derive.interpreter.interpreter import trace_script
from skillruntime.derive.interpreter.relevance import Relevance
from skillruntime.derive.interpreter.words import Outcome, Word


def traced(source: str, number: int) -> Outcome:
    """Return what the script *source* does with *number* words."""
    words = [Word(place) for place in range(number + 1)]
    return trace_script(Relevance(ast.parse(f"import sys\n{source}")), words, 1_000)[0]


@pytest.mark.parametrize(
    "source",
    [
        "print(sys.argv[1])\n",
        "args = sys.argv[1:]\nif len(args) < 1:\n    sys.exit('usage: x.py NAME')\nprint(args[0])\n",
        "def main(argv):\n    if argv:\n        print(argv[0])\nmain(sys.argv[1:])\n",
        "print('--quiet' in sys.argv, sys.argv[1])\n",
    ],
)
def test_further_words_change_nothing_where_each_is_taken_by_its_number(source: str) -> None:
    """So the script need not be traced with more words than it asks for."""
    assert not traced(source, 1).takes_all


@pytest.mark.parametrize(
    "source",
    [
        "for each in sys.argv[1:]:\n    print(each)\n",
        "print(sys.argv[-1])\n",
        "print(sys.argv[1:-1])\n",
        "print(sys.argv[len(sys.argv) - 1])\n",
        "print(' '.join(sys.argv[1:]))\n",
        "first, *rest = sys.argv[1:]\nprint(first)\n",
        "names = sys.argv[1:]\nprint(names.pop())\n",
        "for number in range(1, len(sys.argv)):\n    print(number)\n",
        "if len(sys.argv) - 3:\n    print(sys.argv[1])\n",
        "match sys.argv[1:]:\n    case [name]:\n        print(name)\n",
        "print(*sys.argv[1:])\n",
    ],
)
def test_further_words_may_change_what_goes_through_all_of_them(source: str) -> None:
    """So the script is traced with two words more than it asks for."""
    assert traced(source, 2).takes_all


@pytest.mark.parametrize("first", ["one", "other"])
def test_functions_that_call_each_other_both_matter_if_one_does(first: str) -> None:
    """Whichever of them is asked for first: the answer does not depend on the order of names in a set."""
    source = "def one():\n    other()\ndef other():\n    one()\n    sys.exit(1)\ndef plain():\n    print(1)\n"
    relevance = Relevance(ast.parse(f"import sys\n{source}"))

    assert relevance.touches(first)
    assert relevance.touches("one")
    assert relevance.touches("other")
    assert not relevance.touches("plain")
