"""Find the extra that installs a missing package: the error names the command to run."""

from __future__ import annotations

from importlib.util import find_spec

__all__ = ["installed_extras", "missing_extra"]

_EXTRAS = {
    "standard": (
        "click",
        "httpx2",
        "langchain_core",
        "markdown_it",
        "pydantic",
        "rich",
        "tiktoken",
    ),
    "agents": ("langchain", "langgraph"),
    "mcp": ("mcp", "mcp_types"),
    "serve": ("h11", "prometheus_client", "starlette", "uvicorn"),
    "oauth": ("authlib", "joserfc"),
    "dbos": ("dbos", "psycopg"),
    "otel": ("opentelemetry",),
    "test": ("pytest",),
    "skills": (
        "cryptography",
        "duckdb",
        "feedparser",
        "matplotlib",
        "pdfplumber",
        "pypdf",
        "python_calamine",
    ),
    "adk": ("google.adk",),
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
    "agent-framework": ("agent_framework",),
    "fastmcp": ("fastmcp",),
}
_STANDARD = "standard"


def missing_extra(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error to raise in place of *error*, the failed import of a package
    that an extra installs.

    A failed import of this library's own modules is a bug, so its *error* is returned
    unchanged.

    >>> error = ModuleNotFoundError("No module named 'langgraph'", name="langgraph")
    >>> print(missing_extra(error))
    No module named 'langgraph'; install it with: pip install 'skillruntime[agents]'
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "skillruntime") or "pip install" in str(error):
        return error
    extra = _extra_of(package)
    return ModuleNotFoundError(
        f"{error}; install it with: pip install 'skillruntime[{extra}]'",
        name=error.name,
    )


def _extra_of(package: str) -> str:
    """Return the extra that installs the top-level *package*."""
    for extra, packages in _EXTRAS.items():
        if any(own.partition(".")[0] == package for own in packages):
            return extra
    return _STANDARD


def installed_extras() -> dict[str, bool]:
    """Return for each extra whether its packages are installed."""
    return {
        extra: all(map(_is_installed, packages)) for extra, packages in _EXTRAS.items()
    }


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # of the package around a dotted name
        return False
