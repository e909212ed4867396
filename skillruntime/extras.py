"""Which extra installs a package that is missing: the error names the command to run."""

from __future__ import annotations

__all__ = ["missing_extra"]

_EXTRAS = {
    "agents": ("langchain", "langgraph"),
    "mcp": ("mcp",),
    "serve": ("h11", "prometheus_client", "starlette", "uvicorn"),
    "oauth": ("authlib", "joserfc"),
    "dbos": ("dbos", "psycopg"),
    "otel": ("opentelemetry",),
    "adk": ("google",),
    "openai-agents": ("agents",),
    "pydantic-ai": ("pydantic_ai",),
    "agent-framework": ("agent_framework",),
    "fastmcp": ("fastmcp",),
}
_EXTRA_OF = {package: extra for extra, packages in _EXTRAS.items() for package in packages}
_STANDARD = "standard"


def missing_extra(error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Return the error to raise in place of *error*, the failed import of a package that an extra installs.

    An import of this library's own modules that failed is a bug, and comes back as it is.

    >>> print(missing_extra(ModuleNotFoundError("No module named 'langgraph'", name="langgraph")))
    No module named 'langgraph'; install it with: pip install 'skillruntime[agents]'
    """
    package = (error.name or "").partition(".")[0]
    if package in ("", "skillruntime") or "pip install" in str(error):
        return error
    extra = _EXTRA_OF.get(package, _STANDARD)
    return ModuleNotFoundError(f"{error}; install it with: pip install 'skillruntime[{extra}]'", name=error.name)
