"""The modules that a skill's scripts import: where they are looked for, and how long they are remembered."""

from __future__ import annotations

from skillruntime.catalog.derived_contracts import derive_scripts
from skillruntime.catalog.resources import Resource
from skillruntime.derive import Derivation
from skillruntime.errors import ResourceNotFoundError

SCRIPT = "{head}import argparse\nfrom {module} import MODES\np = argparse.ArgumentParser()\n"
SCRIPT += "p.add_argument('--x', choices=MODES)\np.parse_args()\n"


def derived(files: dict[str, str]) -> dict[str, Derivation]:
    """Return the tools of a skill that holds *files*."""

    def read(path: str) -> bytes:
        if path not in files:
            raise ResourceNotFoundError(f"there is no {path}")
        return files[path].encode()

    return derive_scripts([Resource(path, len(text), "text/x-python") for path, text in files.items()], read)


def choices(derivation: Derivation) -> object:
    """Return the choices of ``--x``."""
    return derivation.document["input"]["properties"]["x"].get("enum")


def test_a_package_in_the_directory_of_the_script_is_read() -> None:
    """``scripts/kit/modes.py`` is what ``scripts/go.py`` means by ``kit.modes``."""
    found = derived(
        {"scripts/go.py": SCRIPT.format(head="", module="kit.modes"), "scripts/kit/modes.py": "MODES = ['a']"}
    )

    assert choices(found["go"]) == ["a"]


def test_a_script_that_changes_sys_path_may_mean_a_module_further_up() -> None:
    """The skill's own directories are tried, from the script's upwards; without such a line only the script's."""
    head = "import sys\nsys.path.insert(0, '..')\n"
    module = {"modes.py": "MODES = ['a']"}

    found = derived({"scripts/sub/go.py": SCRIPT.format(head=head, module="modes"), **module})
    plain = derived({"scripts/sub/go.py": SCRIPT.format(head="", module="modes"), **module})

    assert choices(found["go"]) == ["a"]
    assert choices(plain["go"]) is None


def test_an_unchanged_script_with_unchanged_modules_is_not_read_again() -> None:
    """Activating a skill again gives the same derivations; a module that changed gives another."""
    files = {"scripts/go.py": SCRIPT.format(head="", module="modes"), "scripts/modes.py": "MODES = ['a']"}

    first, again = derived(files)["go"], derived(files)["go"]
    changed = derived({**files, "scripts/modes.py": "MODES = ['b']"})["go"]

    assert again == first
    assert choices(changed) == ["b"]
