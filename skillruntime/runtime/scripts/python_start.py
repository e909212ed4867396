"""Start a Python script of a skill with the skill's root importable, last on the path.

``python FILE`` puts only the script's directory on the path, so ``from scripts.x import
y`` fails, although it works in a shell in the skill's directory. No option of CPython
puts a directory at the end: ``PYTHONPATH`` comes before the standard library, where a
file of the skill could take the place of a module. So a few lines of Python add the
root and then run the script as ``__main__``.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

__all__ = ["RUN_FILE", "is_started_as_module", "python_words"]

# Both run in the namespace of `__main__`, and leave only names such as `__file__`
# behind. `-P` keeps the workspace, where a script starts, off the path.
RUN_FILE = """\
def start():
    import os, sys
    del globals()["start"]
    root, script = sys.argv[1:3]
    del sys.argv[:2]
    sys.path.insert(0, os.path.dirname(script))
    sys.path.append(root)
    globals()["__file__"] = script
    with open(script, "rb") as file:
        return compile(file.read(), script, "exec", dont_inherit=True)
exec(start())
"""
# The attributes that `python -m` sets (the reference of the import system, 5.4.8.1).
_RUN_MODULE = """\
def start():
    import importlib.util, sys
    del globals()["start"]
    root, module = sys.argv[1:3]
    del sys.argv[:2]
    sys.path.append(root)
    spec = importlib.util.find_spec(module)
    sys.argv[0] = spec.origin
    globals().update(
        __spec__=spec,
        __loader__=spec.loader,
        __package__=spec.parent,
        __file__=spec.origin,
    )
    return spec.loader.get_code(module)
exec(start())
"""


def is_started_as_module(instructions: str, script: str) -> bool:
    """Return whether *instructions* start *script*, a path in the skill, by ``python
    -m``.

    >>> is_started_as_module("`python -m scripts.report DATA`", "scripts/report.py")
    True
    >>> is_started_as_module("Run python scripts/report.py.", "scripts/report.py")
    False
    """
    name = re.escape(_module_name(script))
    # `python3.12 -u -m NAME`, and `uv run -m NAME`.
    start = rf"\b(?:python[\d.]*|uv run)(?:[ \t]+-[\w-]+)*?[ \t]+-m[ \t]+{name}"
    return re.search(rf"{start}(?!\.?\w)", instructions) is not None


def python_words(
    root: Path, script: Path, *, as_module: bool = False
) -> tuple[str, ...]:
    """Return the words between the interpreter and the arguments of *script*; *root* is
    the skill's directory.
    """
    if script.parent == root:
        return (str(script),)  # its directory is on the path anyway
    if as_module:
        name = _module_name(script.relative_to(root).as_posix())
        return ("-P", "-c", _RUN_MODULE, str(root), name)
    return ("-P", "-c", RUN_FILE, str(root), str(script))


def _module_name(script: str) -> str:
    """Return the name of the module in the file *script*: ``scripts.report``.

    For a package's ``__main__.py`` it is the package's name, as for ``python -m``.
    """
    path = PurePosixPath(script).with_suffix("")
    parts = path.parts
    if parts[-1] == "__main__" and len(parts) > 1:
        parts = parts[:-1]
    return ".".join(parts)
