"""Scripts with fire: a function or a class of the file is the declaration, of all else the words stay one list."""

from __future__ import annotations

import pytest

from skillruntime.derive import CommandLine, Derivation, derive, to_argv

FUNCTION = '''
import fire


def resize(path, width: int = 100, keep=False, *, tags=None):
    """Resize a picture.

    Args:
        path: The picture to resize.
    """


if __name__ == "__main__":
    fire.Fire(resize)
'''
CLASS = '''
from fire import Fire


class Notes:
    """Keep notes."""

    def __init__(self, folder="."):
        self.folder = folder

    def add(self, title: str, pinned=False):
        """Add a note."""

    def list(self): ...

    def _path(self, name): ...


Fire(Notes)
'''


def derived(source: str) -> Derivation:
    found = derive(source, path="scripts/tool.py")
    assert found is not None
    return found


def words(source: str, arguments: dict[str, object]) -> list[str]:
    derivation = derived(source)
    accepted = derivation.to_contract().accept(arguments, policy="strict").arguments
    return to_argv(CommandLine.from_dict(derivation.document["run"]["command_line"]), accepted)


def test_a_function_that_fire_is_given_is_one_tool() -> None:
    """Defaults and annotations give the types, the docstring the descriptions."""
    derivation = derived(FUNCTION)

    schema = derivation.document["input"]
    anything = {"type": ["string", "number", "boolean", "array", "object"]}
    assert (derivation.framework, derivation.confidence, derivation.complete) == ("fire", "medium", True)
    assert derivation.document["description"] == "Resize a picture."
    assert schema["required"] == ["path"]
    assert schema["properties"] == {
        "path": {**anything, "description": "The picture to resize."},
        "width": {"type": "integer", "default": 100},
        "keep": {"type": "boolean", "default": False},
        "tags": anything,
    }


def test_each_value_is_sent_as_the_python_literal_that_fire_reads() -> None:
    """A text that looks like a number stays a text."""
    arguments = {"path": "7", "keep": True, "tags": ["a", 1]}

    assert words(FUNCTION, arguments) == ["--path='7'", "--keep=True", "--tags=['a', 1]"]


def test_the_public_methods_of_a_class_are_commands() -> None:
    """What the class itself takes goes in front of the command."""
    schema = derived(CLASS).document["input"]

    assert [each["properties"]["command"] for each in schema["oneOf"]] == [{"const": "add"}, {"const": "list"}]
    assert words(CLASS, {"command": "add", "title": "x", "folder": "a"}) == ["--folder='a'", "add", "--title='x'"]


@pytest.mark.parametrize("component", ['{"up": up, "down": down}', ""])
def test_functions_in_a_table_or_a_module_are_commands(component: str) -> None:
    """``fire.Fire()`` takes the functions of the module."""
    source = f"import fire\ndef up(name): ...\ndef down(): ...\ndef main(): fire.Fire({component})\nmain()\n"

    schema = derived(source).document["input"]
    assert [each["properties"]["command"]["const"] for each in schema["oneOf"]] == ["up", "down"]


@pytest.mark.parametrize(
    "source",
    [
        "import fire\nfire.Fire(print)\n",
        "import fire\nfrom tools import thing\nfire.Fire(thing)\n",
        "import fire\ndef total(*numbers): ...\nfire.Fire(total)\n",
        "import fire\ndef total(**named): ...\nfire.Fire(total)\n",
        "import fire\n@cached\ndef total(a): ...\nfire.Fire(total)\n",
        "import fire\nclass A(Base):\n    def go(self): ...\nfire.Fire(A)\n",
        "import fire\nclass A:\n    def __init__(self, x=1): ...\n    def go(self, x): ...\nfire.Fire(A)\n",
        "import fire, sys\ndef go(a): ...\nfire.Fire(go, command=sys.argv[2:])\n",
        "import fire\nfire.Fire(lambda a: a)\n",
    ],
)
def test_what_is_not_a_plain_function_of_the_file_takes_one_list_of_words(source: str) -> None:
    """Never nothing: the words are passed on as they are, and what was not read is said."""
    derivation = derived(source)

    assert list(derivation.document["input"]["properties"]) == ["args"]
    assert not derivation.complete
