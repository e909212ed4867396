"""The layers: imports point down, there is no cycle, and optional libraries are
imported only where they are used.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from tests.proportion import modules, sources

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "skillruntime"
LAYERS = [
    {"extras", "forks", "possessive_patterns"},
    {
        "errors",
        "diagnostic",
        "lazy_exports",
        "lazy_patterns",
        "cache_files",
        "package_directory",
        "_version",
    },
    {"contract"},
    {"compatibility", "derive"},
    {"catalog", "tokens"},
    {"runtime"},
    {"remote"},
    {"server", "adapters", "testing"},
    {"cli"},
    {"__main__"},
]
PURE = [
    "contract",
    "compatibility",
    "derive",
    "catalog/checks/autofix.py",
    "catalog/checks/lint.py",
    "catalog/discovery/summary.py",
    "catalog/frontmatter/field_repair.py",
    "catalog/frontmatter/frontmatter.py",
    "catalog/frontmatter/yaml_reader.py",
    "catalog/rendering.py",
    "remote/descriptor.py",
    "remote/http_message.py",
    "remote/invocation_flow.py",
    "remote/protocol.py",
    "remote/tracing.py",
    "remote/wire_errors.py",
    "server/callers/access.py",
    "server/callers/rate_limits.py",
    "server/executions/executions.py",
    "server/http/openapi.py",
    "server/http/responses.py",
    "server/metrics.py",
]
IMPURE = {
    "anyio",
    "asyncio",
    "socket",
    "subprocess",
    "httpx2",
    "langchain_core",
    "requests",
    "urllib.request",
}
MOST_INNER_IMPORTS = 240
"""How often tests import a module below a package's entry; may only get lower."""
HEAVY = [
    "langchain_core",
    "langchain",
    "tiktoken",
    "httpx2",
    "click",
    "rich",
    "jsonschema",
    "yaml",
    "anyio",
]


@cache
def imports(path: Path) -> list[str]:
    """Return the modules that the file imports when it runs, inside functions too."""
    return [*_imports(path, for_typing=False)]


@cache
def all_imports(path: Path) -> list[str]:
    """Return the modules that the file imports, those for typing alone included."""
    return [*_imports(path, for_typing=True)]


def _imports(path: Path, *, for_typing: bool) -> Iterator[str]:
    pending: list[ast.AST] = [sources()[path]]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            if not for_typing:
                continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        # No import stands inside an expression.
        for child in ast.iter_child_nodes(node):
            if not isinstance(child, ast.expr):
                pending.append(child)


def layer(module: str) -> int | None:
    """Return the layer of *module*: 0 is the lowest."""
    parts = module.split(".")
    return next(
        (
            level
            for level, names in enumerate(LAYERS)
            if len(parts) > 1 and parts[1] in names
        ),
        None,
    )


def test_every_package_has_a_layer() -> None:
    """A new folder is a decision: it must be given its layer here."""
    packages = {name.split(".")[1] for name in modules() if "." in name}

    assert packages <= set().union(*LAYERS)


def test_imports_point_down() -> None:
    """A package imports only from lower layers and from itself."""
    upwards = []
    for module, path in modules().items():
        own, package = layer(module), module.split(".")[1:2]
        for target in imports(path):
            other = layer(target) if target.startswith("skillruntime.") else None
            if (
                other is not None
                and own is not None
                and target.split(".")[1:2] != package
                and other >= own
            ):
                upwards.append(
                    f"{module} imports {target}, which is not in a lower layer"
                )

    assert upwards == []


def test_no_module_imports_itself_in_a_circle() -> None:
    """There is no cycle among modules, not even through imports inside functions or for
    typing alone.
    """
    known = modules()
    edges = {name: _known_targets(name, path) for name, path in known.items()}
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " -> ".join((*above, name))
        if name not in done:
            for target in edges[name]:
                visit(target, (*above, name))
            done.add(name)

    for name in edges:
        visit(name, ())


def _known_targets(name: str, path: Path) -> set[str]:
    targets = set()
    for target in all_imports(path):
        if target in modules() and target != name:
            targets.add(target)
    return targets


def test_no_module_has_a_name_that_its_package_exports() -> None:
    """``skillruntime.contract.repair`` is the function: a module of that name would
    take its place as soon as it is imported.
    """
    clashes = []
    for stub in sorted(PACKAGE.rglob("__init__.pyi")):
        exported = set()
        for node in ast.parse(stub.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ImportFrom):
                exported |= {alias.name for alias in node.names}
        for path in stub.parent.iterdir():
            is_module = path.suffix == ".py" or path.is_dir()
            if is_module and path.stem in exported:
                clashes.append(path.relative_to(PACKAGE).as_posix())

    assert clashes == []


@pytest.mark.parametrize("place", PURE)
def test_pure_modules_do_no_io(place: str) -> None:
    """A module of pure functions imports nothing that waits, uses the network or starts
    a process.
    """
    paths = (
        [PACKAGE / place]
        if place.endswith(".py")
        else sorted((PACKAGE / place).rglob("*.py"))
    )

    for path in paths:
        assert not IMPURE & set(imports(path)), path


def test_nothing_imports_another_files_underscore() -> None:
    """A leading underscore means: this file."""
    for name, path in modules().items():
        for target in imports(path):
            if target.startswith("skillruntime."):
                last = target.rsplit(".", 1)[1]
                assert (
                    not last.startswith("_")
                    or last.startswith("__")
                    or last == "_version"
                ), f"{name} imports {target}"


def is_entry(module: str) -> bool:
    """Return whether a test of another folder may import *module*: a package, a module
    beside them, or a framework's adapter.
    """
    parts = module.split(".")
    is_adapter = parts[1:2] == ["adapters"] and len(parts) == 3
    return len(parts) <= 2 or is_adapter


def inner_imports(path: Path) -> Iterator[str]:
    """Yield the inner module of each import statement of a test."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # A name that is imported from an entry may be a module below it.
            targets = [node.module]
            if node.module.startswith("skillruntime"):
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                targets += [name for name in names if name in modules()]
        else:
            continue
        for target in targets:
            if target.startswith("skillruntime.") and not is_entry(target):
                yield target
                break


def test_tests_import_entries() -> None:
    """Inner names are for the test file of their module: what other tests use can be
    moved freely.
    """
    found = Counter[str]()
    for path in (ROOT / "tests").rglob("*.py"):
        found.update(inner_imports(path))

    assert found.total() <= MOST_INNER_IMPORTS, found.most_common(20)


@pytest.mark.processes
def test_importing_the_package_loads_no_heavy_library() -> None:
    """``import skillruntime`` imports no LangChain, tiktoken, HTTP, CLI, schema or YAML
    library.
    """
    code = (
        f"import sys, skillruntime; print([name for name in {HEAVY!r} if name in "
        "sys.modules])"
    )

    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )

    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "stub", sorted(PACKAGE.rglob("__init__.pyi")), ids=lambda stub: stub.parent.name
)
def test_every_public_name_resolves(stub: Path) -> None:
    """Each name in an `__init__.pyi` can be imported, and ``dir`` lists it."""
    package = import_module(".".join(stub.parent.relative_to(ROOT).parts))
    exported = set()
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        assert isinstance(node, ast.ImportFrom)
        exported |= {alias.asname for alias in node.names}

    assert exported == set(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert name in dir(package)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing
