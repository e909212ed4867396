"""Modules next to a script: packages and relative names too, read when they are used, and never remembered too long."""

from __future__ import annotations

from skillruntime.derive import Derivation, derive

HEAD = "import argparse\np = argparse.ArgumentParser()\n"
TAIL = "p.parse_args()\n"


def derived(script: str, modules: dict[str, str]) -> Derivation:
    """Return what is read of *script* with *modules* next to it."""
    derivation = derive(script, path="scripts/s.py", neighbours=modules.get)
    assert derivation is not None
    return derivation


def choices(derivation: Derivation) -> object:
    """Return the choices of ``--x``."""
    return derivation.document["input"]["properties"]["x"].get("enum")


def test_a_package_beside_the_script_is_read_with_its_relative_imports() -> None:
    """``from tools import MODES`` where the package takes it from a module of its own."""
    modules = {
        "tools.__init__": "from .modes import MODES\nfrom . import depth\n",
        "tools.modes": "from ..elsewhere import X\nMODES = ['a', 'b']\n",
        "tools.depth": "LEAST = 2\n",
    }
    script = f"from tools import MODES, depth\n{HEAD}p.add_argument('--x', choices=MODES)\n"
    script += f"p.add_argument('--y', type=int, default=depth.LEAST)\n{TAIL}"

    found = derived(script, modules)

    assert choices(found) == ["a", "b"]
    assert found.document["input"]["properties"]["y"]["default"] == 2


def test_a_directory_without_an_init_file_is_a_package_too() -> None:
    """``import lib.modes`` needs no more than the module itself."""
    script = f"from lib import modes\nfrom lib.modes import *\n{HEAD}p.add_argument('--x', choices=modes.MODES)\n"
    script += f"p.add_argument('--y', choices=MODES)\n{TAIL}"

    found = derived(script, {"lib.modes": "MODES = ['a']\n_HIDDEN = 1\n"})

    assert choices(found) == ["a"]
    assert found.complete


def test_a_module_is_read_where_a_name_of_it_is_used_and_not_where_it_is_imported() -> None:
    """What the parser does not need costs nothing."""
    asked: list[str] = []

    def neighbours(name: str) -> str | None:
        asked.append(name)
        return {"modes": "MODES = ['a']\n", "heavy": "X = 1\n"}.get(name)

    script = f"import heavy\nfrom heavy import X\nimport os, json\nfrom modes import MODES\n{HEAD}"
    script += f"p.add_argument('--x', choices=MODES)\n{TAIL}heavy.go(X, os, json)\n"
    found = derive(script, path="s.py", neighbours=neighbours)

    assert found is not None
    assert choices(found) == ["a"]
    assert asked == ["modes"]


def test_the_parser_itself_may_stand_in_another_module() -> None:
    """A script that never names argparse, and parses with what a module next to it built."""
    module = (
        "import argparse\ndef build():\n    p = argparse.ArgumentParser()\n    p.add_argument('--x', choices=['a'])\n"
    )
    script = "from cli import build\nif __name__ == '__main__':\n    print(build().parse_args())\n"

    found = derived(script, {"cli": f"{module}    return p\n"})

    assert choices(found) == ["a"]


def test_what_was_derived_is_forgotten_when_a_module_beside_the_script_changes() -> None:
    """The same script with another module next to it is another reading; with the same one it is the same."""
    script = f"from modes import MODES\n{HEAD}p.add_argument('--x', choices=MODES)\n{TAIL}"
    modules = {"modes": "MODES = ['a']\n"}

    first = derived(script, modules)
    again = derived(script, dict(modules))
    changed = derived(script, {"modes": "MODES = ['b']\n"})
    gone = derived(script, {})

    assert again is first
    assert choices(changed) == ["b"]
    assert choices(gone) is None


def test_a_module_too_many_is_as_good_as_foreign() -> None:
    """Modules that import one another on and on cost a bounded number of readings, and end as unread."""
    modules = {f"m{n}": f"from m{n + 1} import MODES\n" for n in range(200)}

    found = derived(f"from m0 import MODES\n{HEAD}p.add_argument('--x', choices=MODES)\n{TAIL}", modules)

    assert [each.reason for each in found.unread] == ["its choices are computed"]


def test_a_module_named_like_one_of_the_standard_library_is_not_looked_for() -> None:
    """``import argparse`` means argparse, even with an argparse.py next to the script."""
    found = derived(f"{HEAD}p.add_argument('--x')\n{TAIL}", {"argparse": "ArgumentParser = None\n"})

    assert found.complete
    assert list(found.document["input"]["properties"]) == ["x"]
