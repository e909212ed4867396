"""What may have been changed is not known: nothing is claimed that a condition or a
loop could undo.
"""

from __future__ import annotations

from typing import Any

import pytest

from skillruntime.derive import Derivation, derive

HEAD = "import argparse, os, sys\np = argparse.ArgumentParser()\n"
CHOICES = "p.add_argument('--x', choices=m)\n"
DEFAULT = "p.add_argument('--x', default=m)\n"
MAYBE = "if os.path.exists('f'):\n    "
COMPUTED = "its choices are computed"
CONDITION = "whether it is there depends on a condition"


def derived(body: str) -> Derivation:
    """Return what is read of a script that does *body* to its parser ``p``."""
    derivation = derive(f"{HEAD}{body}\np.parse_args()\n", path="s.py")
    assert derivation is not None
    return derivation


def of_x(derivation: Derivation, key: str) -> Any:
    """Return what is said of ``--x`` under *key*."""
    return derivation.document["input"]["properties"]["x"].get(key)


@pytest.mark.parametrize(
    "change",
    [
        "m = ['a']\nm.extend(os.listdir('.'))",
        "m = ['a']\nm.insert(0, os.getcwd())",
        "m = ['a', 'b']\nm.sort(key=os.path.getsize)",
        "m = ['a', 'b']\nm[:] = ['c']",
        f"m = ['a']\n{MAYBE}m.append('b')",
        f"m = ['a']\n{MAYBE}m[0] = 'b'",
        f"m = {{'k': ['a']}}\n{MAYBE}m['k'].append('b')\nm = m['k']",
        f"m = {{'k': ['a']}}\n{MAYBE}m.get('k').append('b')\nm = m['k']",
        "m = {'a': 1}\nm.update(os.environ)",
        "m = {'a': 1}\nm[os.getcwd()] = 2",
        f"m = {{'a': 1}}\n{MAYBE}m['b'] = 2",
        f"m = {{'a': 1, 'b': 2}}\n{MAYBE}del m['b']",
        "m = ['a']\nfor f in os.listdir('.'):\n    m = ['b']",
        "m = []\n"
        "for v in ['a', 'b']:\n"
        "    if os.path.exists(v):\n"
        "        continue\n"
        "    m.append(v)",
        "m = []\n"
        "for v in ['a', 'b']:\n"
        "    if os.path.exists(v):\n"
        "        break\n"
        "    m.append(v)",
        "def f():\n"
        f"    {MAYBE.replace('    ', '        ')}return ['a']\n"
        "    return ['b']\n"
        "m = f()",
    ],
)
def test_choices_that_may_be_others_are_computed(change: str) -> None:
    """The list in the source is not the list that the parser gets."""
    found = derived(f"{change}\n{CHOICES}")

    assert [each.reason for each in found.unread] == [COMPUTED]
    assert of_x(found, "enum") is None


@pytest.mark.parametrize(
    "change",
    [
        "m = 'a'\nwhile os.path.exists('f'):\n    m = 'b'",
        "m = 'a'\nmatch os.getcwd():\n    case 'x':\n        m = 'b'",
        f"m = 'a'\ndef f():\n    global m\n    m = 'b'\n{MAYBE}f()",
        f"class A:\n    pass\na = A()\na.m = 'a'\n{MAYBE}a.m = 'b'\nm = a.m",
        "m = None\n"
        "for v in ['a', 'b']:\n"
        "    m = v\n"
        "    if os.path.exists(v):\n"
        "        break",
        "m = 'a'\ntry:\n    import nowhere\n    m = 'b'\nexcept ImportError:\n    pass",
        "def f():\n"
        "    m = 'a'\n"
        "    def g():\n"
        "        nonlocal m\n"
        "        m = 'b'\n"
        "    g()\n"
        "    return m\n"
        "m = f()",
    ],
)
def test_a_default_that_may_be_another_is_not_declared(change: str) -> None:
    """The argument is whole; only its default is the script's own affair."""
    found = derived(f"{change}\n{DEFAULT}")

    assert of_x(found, "default") is None
    assert found.complete


@pytest.mark.parametrize(
    "body",
    [
        "p.add_argument('--x')\np._remove_action(p._actions[-1])",
        "import other\nother.of(os.getcwd()).add_argument('--x')",
    ],
)
def test_what_is_done_behind_the_parsers_back_is_reported(body: str) -> None:
    """Private methods, and arguments that are added to an unknown object."""
    assert "arguments" in {each.argument for each in derived(body).unread}


@pytest.mark.parametrize(
    "body",
    [
        "def add():\n"
        f"    {MAYBE.replace('    ', '        ')}return\n"
        "    p.add_argument('--x')\n"
        "add()",
        "for v in ['x', 'y']:\n"
        "    if os.path.exists(v):\n"
        "        continue\n"
        "    p.add_argument('--' + v)",
        "for v in ['x', 'y']:\n"
        "    p.add_argument('--' + v)\n"
        "    if os.path.exists(v):\n"
        "        break",
        "a = p.add_argument('--x')\na.choices = ['a']",
        "add = p.add_argument\nadd('--x')",
        "def add(make):\n    make('--x')\nadd(p.add_argument)",
    ],
)
def test_an_argument_that_may_be_there_or_be_changed_is_reported(body: str) -> None:
    """A function that may have returned, a loop that may have been left, an action that
    is changed later.
    """
    assert not derived(body).complete


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            "p.add_argument('--x', default='a')\np.set_defaults(x='b')",
            {"type": "string", "default": "b"},
        ),
        (
            f"p.add_argument('--x', default='a')\n{MAYBE}p.set_defaults(x='b')",
            {"type": "string"},
        ),
    ],
)
def test_a_default_that_is_set_later_wins(body: str, expected: dict[str, Any]) -> None:
    """`set_defaults` wins over the argument's own default, and under a condition no
    default is certain.
    """
    found = derived(body)

    assert found.document["input"]["properties"] == {"x": expected}
    assert found.complete
