"""The engines, and the environment in which each of them is installed.

An engine of PyPI gets a virtual environment of its own, made with uv where uv is
installed and with venv and pip elsewhere; one of npm gets a folder with ``node_modules``.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

ADAPTERS = Path(__file__).parent / "adapters"


@dataclass(frozen=True, slots=True)
class Engine:
    """What is measured: the packages that it needs, the first of which is the engine,
    its adapter, and what the page says about it.
    """

    name: str
    packages: tuple[str, ...]
    adapter: str
    called: str
    purpose: str
    arguments: tuple[str, ...] = ()
    source: str | None = None
    """What is installed in place of the first package: a path or an address."""

    @property
    def is_node(self) -> bool:
        return self.adapter.endswith(".mjs")


JSON_REPAIR = ("json-repair", "jsonschema", "pydantic")
ENGINES = [
    Engine(
        "skillruntime",
        ("skillruntime",),
        "skillruntime_engine.py",
        "`repair(payload, schema)`",
        "repairs arguments, or refuses them",
    ),
    Engine(
        "json_repair",
        JSON_REPAIR,
        "json_repair_engine.py",
        "`loads(text, schema=schema)`",
        "always returns JSON; with a schema, JSON that fits",
        ("standard",),
    ),
    Engine(
        "json_repair (salvage)",
        JSON_REPAIR,
        "json_repair_engine.py",
        'the same, with `schema_repair_mode="salvage"`',
        "the same, and leaves out what does not fit",
        ("salvage",),
    ),
    Engine(
        "json_repair + pydantic",
        JSON_REPAIR,
        "json_repair_pydantic_engine.py",
        "`loads(text)`, then a model in lax mode",
        "what many programs run",
    ),
    Engine(
        "pydantic",
        ("pydantic",),
        "pydantic_engine.py",
        "a model in lax mode",
        "validates, and converts scalars",
    ),
    Engine(
        "BAML",
        ("baml-py", "pydantic"),
        "baml_engine.py",
        "the parser of a function that returns a class",
        "always returns an instance, if the text has something like one",
    ),
    Engine(
        "toolproxy",
        ("toolproxy",),
        "toolproxy_engine.py",
        "`repair_arguments(model, arguments)`, then the model",
        "repairs arguments that are JSON",
    ),
    Engine(
        "agent-airlock",
        ("agent-airlock",),
        "airlock_engine.py",
        "`Airlock()(function)(**arguments)`",
        "checks arguments before a function runs",
    ),
    Engine(
        "toolpatch",
        ("toolpatch",),
        "toolpatch_engine.py",
        "`extract_tool_calls(text)`, else `heal_json(text)`",
        "finds calls in a model's text; reads no schema",
    ),
    Engine(
        "ajv",
        ("ajv",),
        "ajv.mjs",
        "`coerceTypes: true`",
        "validates, and converts scalars",
    ),
    Engine(
        "ajv (array)",
        ("ajv",),
        "ajv.mjs",
        '`coerceTypes: "array"`',
        "the same, and makes a list of one value, or a value of such a list",
        ("array",),
    ),
    Engine(
        "jsonrepair",
        ("jsonrepair",),
        "jsonrepair.mjs",
        "`jsonrepair(text)`",
        "repairs the syntax of JSON; reads no schema",
    ),
]


@dataclass(frozen=True, slots=True)
class Installed:
    """An engine that is ready: the command of its adapter, its version, and the bytes
    that its packages take.
    """

    command: tuple[str, ...]
    version: str
    size: int


def with_sources(engines: list[Engine], sources: dict[str, str]) -> list[Engine]:
    """Return *engines* with what is installed for the names in *sources* in place of
    their first package.
    """
    found = []
    for engine in engines:
        source = sources.get(engine.packages[0])
        found.append(replace(engine, source=source) if source else engine)
    return found


def installed(engine: Engine, work: Path) -> Installed:
    """Install *engine* below *work*, unless it is there.

    Raises:
        OSError: a program that is needed, npm for example, is not installed.
        subprocess.CalledProcessError: a package cannot be installed.
    """
    place = work / "environments" / "+".join(engine.packages)
    if engine.is_node:
        return _installed_from_npm(engine, place)
    python = place / "bin" / "python"
    ready = place / "ready"
    if not ready.exists() or engine.source:
        _install_from_pypi(engine, place)
        ready.touch()
    code = "import sys; from importlib.metadata import version; "
    code += "print(version(sys.argv[1]))"
    said = subprocess.run(
        [python, "-c", code, engine.packages[0]],
        capture_output=True,
        text=True,
        check=True,
    )
    adapter = ADAPTERS / engine.adapter
    command = (str(python), "-W", "ignore", str(adapter), *engine.arguments)
    packages = next((place / "lib").glob("python*/site-packages"))
    return Installed(command, said.stdout.strip(), _size(packages))


def _install_from_pypi(engine: Engine, place: Path) -> None:
    first, *others = engine.packages
    requirements = [engine.source or first, *others]
    python = str(place / "bin" / "python")
    uv = shutil.which("uv")
    if uv:
        create = [uv, "venv", "--quiet", "--clear", "--python", sys.executable]
        install = [uv, "pip", "install", "--quiet", "--python", python]
        if engine.source:
            # Otherwise uv takes the wheel that it built from a folder before.
            install += ["--reinstall-package", first]
    else:
        create = [sys.executable, "-m", "venv", "--clear"]
        install = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*create, str(place)], check=True, capture_output=True, text=True)
    subprocess.run(
        [*install, *requirements], check=True, capture_output=True, text=True
    )


def _installed_from_npm(engine: Engine, place: Path) -> Installed:
    modules = place / "node_modules"
    if not modules.exists():
        place.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            ["npm", "install", "--silent", "--prefix", place, *engine.packages],
            check=True,
            capture_output=True,
            text=True,
        )
    for module in ADAPTERS.glob("*.mjs"):
        # Node looks for a package next to the file that imports it.
        shutil.copy(module, place)
    manifest = modules / engine.packages[0] / "package.json"
    version = str(json.loads(manifest.read_text(encoding="utf-8"))["version"])
    command = ("node", str(place / engine.adapter), *engine.arguments)
    return Installed(command, version, _size(modules))


def _size(packages: Path) -> int:
    """Return the bytes of the files in *packages*, without those of pip and without
    what Python compiles from them.
    """
    total = 0
    for path in packages.rglob("*"):
        top = path.relative_to(packages).parts[0]
        is_own = top.startswith(("pip", "setuptools", "_virtualenv"))
        if not is_own and path.suffix != ".pyc" and path.is_file():
            total += path.stat().st_size
    return total
