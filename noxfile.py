"""The sessions that a contributor runs: ``nox -l`` lists them, ``nox`` runs the quick
ones.
"""

from __future__ import annotations

import nox

nox.options.sessions = ["quick", "lint", "types"]
nox.options.reuse_existing_virtualenvs = True
# A Python that is not installed is skipped, and said.
nox.options.error_on_missing_interpreters = False

PYTHONS = nox.project.python_versions(nox.project.load_toml("pyproject.toml"))
"""Those that the classifiers name."""


@nox.session
def quick(session: nox.Session) -> None:
    """Run the tests that stay in one process."""
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "-m",
        "not slow and not processes",
        *session.posargs,
    )


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Run the tests as `python -m pytest` does, on every Python that is installed."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """Run the tests that the ordinary run leaves out."""
    session.install("-e", ".[dev]")
    session.run("python", "-m", "pytest", "-q", "-m", "slow", *session.posargs)


@nox.session
def coverage(session: nox.Session) -> None:
    """Run the ordinary tests with branch coverage."""
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "--cov",
        "--cov-report=term:skip-covered",
        *session.posargs,
    )


@nox.session
def base(session: nox.Session) -> None:
    """Run what a plain install can do, without any extra; tests of what needs one are
    skipped.
    """
    session.install(
        "-e",
        ".",
        "hypothesis>=6.140,<6.164",
        "hypothesis-jsonschema>=0.23,<0.24",
        "pytest>=8.4,<10",
        "pytest-asyncio",
        "pytest-xdist>=3.8,<4",
        "trio>=0.30",
    )
    tests = [
        "tests/contract",
        "tests/compatibility",
        "tests/derive",
        "tests/catalog",
        "tests/tokens",
        "tests/runtime",
    ]
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        *(session.posargs or tests),
        env={"SKILLRUNTIME_TESTS_BASE": "1"},
    )


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and format, and print how large and how dense the package is."""
    session.install("ruff>=0.14,<0.18")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("python", "-m", "tests.proportion")


@nox.session
def types(session: nox.Session) -> None:
    """Check types, strictly."""
    session.install("-e", ".[dev]")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build, warnings as errors; run every example and every
    guide.
    """
    session.install("-e", ".[dev]")
    session.run(
        "python",
        "-m",
        "sphinx",
        "--fail-on-warning",
        "--keep-going",
        "-b",
        "html",
        "docs",
        "docs/_build",
    )
    session.run(
        "python",
        "-m",
        "pytest",
        "-q",
        "tests/test_documents.py",
        "tests/test_guides.py",
        "tests/adapters/test_examples.py",
    )


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks that need no data of their own."""
    session.install("-e", ".[dev,peers]")
    for name in ("accept", "call_overhead", "compatibility", "load"):
        session.run("python", f"benchmarks/{name}.py")
