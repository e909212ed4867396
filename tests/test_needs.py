"""A skipped test says what would make it run."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests import needs

TESTS = Path(__file__).parent
_SKIPS = (
    "pytest.skip",
    "pytest.mark.skip",
    "pytest.mark.skipif",
    "pytest.importorskip",
)


def skips() -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the place and the reason of each skip in the tests."""
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            if called not in _SKIPS:
                continue
            reasons = [each.value for each in node.keywords if each.arg == "reason"]
            if called == "pytest.skip":
                reasons += node.args
            place = f"{path.relative_to(TESTS)}:{node.lineno}"
            yield place, reasons[0] if reasons else None


def says_what_is_needed(reason: ast.expr | None) -> bool:
    """Return whether the text begins with "needs", or comes from the module of them."""
    if reason is None:
        return False
    text = ast.unparse(reason).removeprefix("f").strip("'\"")
    return text.startswith(("needs ", "needs.", "to_", "missing"))


def test_every_skip_says_what_would_make_the_test_run() -> None:
    """A program with its package, an extra, a file, a system, or another user."""
    found = list(skips())

    assert [place for place, reason in found if not says_what_is_needed(reason)] == []
    assert len(found) > 50  # they were found at all


def test_a_module_is_installed_by_its_extra_or_its_distribution() -> None:
    """Also one inside a package; pip knows each name."""
    assert needs.to_install("mcp.types") == (
        "needs the extra mcp: pip install 'skillruntime[mcp]'"
    )
    assert needs.to_install("google.genai.types") == (
        "needs google.genai.types: pip install google-genai"
    )
    assert needs.to_install("prefect.testing.utilities") == (
        "needs prefect.testing.utilities: pip install prefect"
    )


def test_a_program_is_installed_by_its_package() -> None:
    """Debian calls some otherwise."""
    assert needs.to_get("node") == "needs node: apt-get install nodejs"
    assert needs.to_get("ruby") == "needs ruby: apt-get install ruby"
