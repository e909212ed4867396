"""The sessions that a contributor runs: ``nox -l`` lists them, ``nox`` runs the quick ones."""

from __future__ import annotations

import nox

nox.options.sessions = ["quick", "lint", "types"]
nox.options.reuse_existing_virtualenvs = True

QUICK = ("tests/contract", "tests/compatibility", "tests/tokens", "tests/test_architecture.py")


@nox.session
def quick(session: nox.Session) -> None:
    """Run the tests that take under a minute."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", *(session.posargs or QUICK))


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests, with branch coverage."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", "--cov", "--cov-report=term:skip-covered", *session.posargs)


@nox.session
def base(session: nox.Session) -> None:
    """Run what a plain install can do, without any extra; tests of what needs one are skipped."""
    session.install(
        *("-e", ".", "hypothesis>=6.140,<6.164", "hypothesis-jsonschema>=0.23,<0.24"),
        *("pytest>=8.4,<10", "pytest-asyncio", "trio>=0.30"),
    )
    tests = [f"tests/{name}" for name in ("contract", "compatibility", "derive", "catalog", "tokens", "runtime")]
    session.run("python", "-m", "pytest", "-q", *(session.posargs or tests), env={"SKILLRUNTIME_TESTS_BASE": "1"})


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format."""
    session.install("ruff>=0.14,<0.18")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build, warnings as errors; run every example and every guide."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "sphinx", "--fail-on-warning", "--keep-going", "-b", "html", "docs", "docs/_build")
    session.run(
        *("python", "-m", "pytest", "-q"), *(f"tests/test_{name}.py" for name in ("documents", "examples", "guides"))
    )


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks that need no data of their own."""
    session.install("-e", ".[dev,peers]")
    for name in ("accept", "call_overhead", "compatibility", "load"):
        session.run("python", f"benchmarks/{name}.py")
