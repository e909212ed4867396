"""What a test needs beside this checkout and a plain Python: a test without it is
skipped, and the reason says what would make it run.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

EXTRAS = {
    "agent_framework": "agent-framework",
    "agents": "openai-agents",
    "authlib": "oauth",
    "click": "standard",
    "dbos": "dbos",
    "fastmcp": "fastmcp",
    "google.adk": "adk",
    "httpx2": "standard",
    "joserfc": "oauth",
    "langchain": "agents",
    "langchain_core": "standard",
    "langgraph": "agents",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "psycopg": "dbos",
    "pydantic": "standard",
    "pydantic_ai": "pydantic-ai",
    "skillruntime.adapters.langchain": "standard",
    "skillruntime.server.executions.postgres.instance": "dbos",
    "starlette": "serve",
    "tiktoken": "standard",
    "uvicorn": "serve",
}
"""The extra that installs a module, by the module or the package that holds it."""

DISTRIBUTIONS = {
    "google.genai": "google-genai",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "rfc3339_validator": "rfc3339-validator",
    "skills_ref": "skills-ref",
}
"""What installs a module that no extra names, where it is not called as the package."""

DEBIAN = {
    "Rscript": "r-base-core",
    "bwrap": "bubblewrap",
    "go": "golang",
    "node": "nodejs",
    "pdftotext": "poppler-utils",
    "php": "php-cli",
    "rg": "ripgrep",
    "setpriv": "util-linux",
    "soffice": "libreoffice-writer-nogui",
    "systemd-analyze": "systemd",
}
"""Debian's package of a program, where it has another name."""

LINUX = "needs Linux"
UNIX = "needs a POSIX system"
ROOT_USER = "needs the rights of root: run the tests as root"
OTHER_USER = "needs another user than root, who can read any file: run the tests as one"


def to_install(module: str) -> str:
    name = module
    while name:
        if name in EXTRAS:
            extra = EXTRAS[name]
            return f"needs the extra {extra}: pip install 'skillruntime[{extra}]'"
        if name in DISTRIBUTIONS:
            return f"needs {module}: pip install {DISTRIBUTIONS[name]}"
        name = name.rpartition(".")[0]
    return f"needs {module}: pip install {module.partition('.')[0]}"


def package(module: str) -> Any:
    """Import and return *module*; skip where it is not installed."""
    return pytest.importorskip(module, reason=to_install(module))


def installed(module: str) -> None:
    """Skip where *module* is not installed, and do not import it."""
    try:
        is_installed = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # of the package around it
        is_installed = False
    if not is_installed:
        pytest.skip(to_install(module))


def to_get(program: str) -> str:
    if program == "uv":
        return "needs uv: pip install uv"
    return f"needs {program}: apt-get install {DEBIAN.get(program, program)}"


def program(name: str) -> str:
    """Return the path of a program; skip where it is not installed."""
    path = _find(name)
    if path is None:
        pytest.skip(to_get(name))
    return path


def with_program(name: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs a program."""
    return pytest.mark.skipif(_find(name) is None, reason=to_get(name))


def _find(name: str) -> str | None:
    # pip installs a program beside the interpreter, where PATH need not lead.
    return shutil.which(name) or shutil.which(
        name, path=str(Path(sys.executable).parent)
    )


DATA = Path(__file__).parents[1] / "../shared/data"
"""What the project was developed with: real skills, other people's test suites."""


def to_read(path: str) -> str:
    return f"needs ../shared/data/{path}, which is not part of the repository"


def data(path: str) -> Path:
    """Return a file or a directory of the shared data; skip where it is not there."""
    if not (DATA / path).exists():
        pytest.skip(to_read(path))
    return DATA / path


def with_data(path: str) -> pytest.MarkDecorator:
    """Return the mark of a test that needs a file or a directory of the shared data."""
    return pytest.mark.skipif(not (DATA / path).exists(), reason=to_read(path))


def is_root() -> bool:
    """Return whether the tests run as root; no user of Windows is."""
    return hasattr(os, "geteuid") and os.geteuid() == 0
