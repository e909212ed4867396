"""Packages that declare commands, and parsers that are classes of the script's own."""

from __future__ import annotations

from skillruntime.derive import Derivation, derive


def derived(source: str, path: str) -> Derivation:
    found = derive(source, path=path)
    assert found is not None
    return found


def test_the_flags_that_a_package_reads_are_named() -> None:
    """A skill brings no packages along: what commander declares is not read, and the
    call is one list of words.
    """
    source = (
        "#!/usr/bin/env node\n// Shrink pictures.\nconst { program } ="
        ' require("commander");\nprogram.argument("<file>").option("-q, --quality'
        ' <number>", "from 1 to 100").option("--keep");\nprogram.parse();\n'
    )

    found = derived(source, "shrink.js")

    assert found.document["description"] == "Shrink pictures."
    words = found.document["input"]["properties"]["args"]
    assert words["description"].endswith("Flags: --quality --keep")
    assert not found.complete


def test_a_method_of_the_class_above_may_be_called_by_its_name() -> None:
    """A parser that changes its options before it declares them."""
    source = (
        "import argparse\n"
        "class Mine(argparse.ArgumentParser):\n"
        "    def __init__(self, usage):\n"
        "        argparse.ArgumentParser.__init__(self, usage=usage)\n"
        "    def add_argument(self, *args, **kw):\n"
        "        kw.pop('env', None)\n"
        "        argparse.ArgumentParser.add_argument(self, *args, **kw)\n"
        "parser = Mine('x')\n"
        "parser.add_argument('--depth', env='D')\n"
        "parser.parse_args()\n"
    )

    assert list(derived(source, "x.py").document["input"]["properties"]) == ["depth"]


def test_a_default_function_of_none_requires_a_command() -> None:
    """``set_defaults(func=None)`` is there to be tested."""
    source = (
        "import argparse\n"
        "p = argparse.ArgumentParser()\n"
        "p.set_defaults(func=None)\n"
        "s = p.add_subparsers()\n"
        "s.add_parser('add').set_defaults(func=print)\n"
        "a = p.parse_args()\n"
        "if a.func is None:\n"
        "    p.error('command')\n"
    )

    assert derived(source, "x.py").document["input"]["required"] == ["command"]
