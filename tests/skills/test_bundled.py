"""What holds for every bundled skill: the format, the contracts, the scripts'
declarations.
"""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from skills_ref import validate

from skillruntime.catalog import discover
from skillruntime.contract import Contract
from skillruntime.tokens import count

SKILLS = Path(__file__).resolve().parents[2] / "skills"
NAMES = ["code-review", "daily-news-digest", "data-analysis", "pdf-processing"]
CONTRACTS = sorted(
    [*SKILLS.glob("*/contract.json"), *SKILLS.glob("*/contracts/*.json")]
)
SHARED = sorted(SKILLS.glob("*/scripts/script_call.py"))


def _label(path: Path) -> str:
    return path.relative_to(SKILLS).as_posix()


def _contract(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_these_four_skills_are_bundled() -> None:
    """The bundled skills are the ones the documentation names."""
    assert sorted(path.parent.name for path in SKILLS.glob("*/SKILL.md")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_validator_finds_nothing(name: str) -> None:
    """Each skill is valid for skills-ref, the Agent Skills format's own validator."""
    assert validate(SKILLS / name) == []


@pytest.mark.parametrize("name", NAMES)
def test_instructions_are_short_and_their_links_lead_somewhere(name: str) -> None:
    """The description costs at most 45 tokens and says when; the body stays under 500
    lines; each link has its file.
    """
    text = (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")
    description = re.search(r"^description: (.+)$", text, re.MULTILINE)
    links = re.findall(r"\]\(([^)#:]+)\)", text)

    assert (
        description
        and count(description[1]).tokens <= 45
        and "Use when" in description[1]
    )
    assert len(text.splitlines()) < 500
    assert links and all((SKILLS / name / link).is_file() for link in links)
    assert sorted(
        f"references/{path.name}" for path in (SKILLS / name / "references").iterdir()
    ) == sorted(set(links))


@pytest.mark.parametrize("name", NAMES)
def test_examples_in_the_instructions_fit_the_contract(name: str) -> None:
    """Each JSON block in a SKILL.md is valid for the input or the output of one of the
    skill's contracts.
    """
    contracts = [
        _contract(path) for path in CONTRACTS if path.is_relative_to(SKILLS / name)
    ]
    schemas = [contract[side] for contract in contracts for side in ("input", "output")]
    text = (SKILLS / name / "SKILL.md").read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^```json\n(.*?)^```", text)

    assert blocks
    for block in blocks:
        example = json.loads(block)
        assert any(
            jsonschema.Draft202012Validator(schema).is_valid(example)
            for schema in schemas
        ), block


@pytest.mark.parametrize("path", CONTRACTS, ids=_label)
def test_contract_follows_the_contract_document(path: Path) -> None:
    """A contract's schemas are valid, refuse unknown parameters, and describe each one
    for a model (document, 31.1).
    """
    contract = _contract(path)

    assert contract["$schema"] == "https://json-schema.org/draft/2020-12"
    assert contract["input"]["additionalProperties"] is False
    assert {"read_only", "idempotent"} <= set(contract["annotations"])
    for side in ("input", "output"):
        jsonschema.Draft202012Validator.check_schema(contract[side])
    for name, schema in contract["input"]["properties"].items():
        assert len(schema["description"]) > 40, name
        for example in schema.get("examples", []) + (
            [schema["default"]] if "default" in schema else []
        ):
            jsonschema.Draft202012Validator(schema).validate(example)
        assert (name in contract["input"]["required"]) != (
            "default" in schema
        ) or name not in contract["input"]["required"]
    assert Contract.from_dict(contract).version == contract["version"]


@pytest.mark.parametrize("path", CONTRACTS, ids=_label)
def test_contract_and_instructions_agree_on_the_version(path: Path) -> None:
    """The version in a SKILL.md's metadata is the one of its contracts."""
    skill = path.parent if path.name == "contract.json" else path.parent.parent
    text = (skill / "SKILL.md").read_text(encoding="utf-8")

    assert f'version: "{_contract(path)["version"]}"' in text


@pytest.mark.parametrize("path", CONTRACTS, ids=_label)
def test_script_declares_what_its_contract_requires(path: Path) -> None:
    """The PEP 723 block of a contract's script lists the contract's packages."""
    contract = _contract(path)
    skill = path.parent if path.name == "contract.json" else path.parent.parent
    source = (skill / contract["run"]["script"]).read_text(encoding="utf-8")
    block = re.search(r"(?m)^# /// script$\s((?:^#(?:| .*)$\s)+)^# ///$", source)

    assert block
    declared = tomllib.loads("\n".join(line[2:] for line in block[1].splitlines()))
    assert sorted(declared["dependencies"]) == sorted(contract["requires"]["packages"])


@pytest.mark.processes
@pytest.mark.parametrize(
    "path", [path for path in CONTRACTS if path.stem != "changed-lines"], ids=_label
)
def test_missing_package_is_named(path: Path, tmp_path: Path) -> None:
    """Without its packages a script ends with ModuleNotFoundError, which a runtime
    turns into TOOL_NOT_AVAILABLE.
    """
    contract = _contract(path)
    skill = path.parent if path.name == "contract.json" else path.parent.parent
    command = [
        sys.executable,
        "-S",
        "-B",
        str(skill / contract["run"]["script"]),
    ]  # -S: nothing that was installed

    done = subprocess.run(
        command,
        input=b"{}",
        capture_output=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )

    last = done.stderr.decode().splitlines()[-1]
    names = "|".join(
        re.split("[<>=]", package)[0] for package in contract["requires"]["packages"]
    )
    assert done.returncode == 1 and re.fullmatch(
        f"ModuleNotFoundError: No module named '({names})'", last
    )


def test_what_scripts_share_is_the_same_in_every_skill() -> None:
    """A skill is standalone, so each has its own script_call.py; all copies are
    equal.
    """
    assert len(SHARED) == 4
    assert len({path.read_bytes() for path in SHARED}) == 1


@pytest.mark.parametrize(
    ("skill", "query"),
    [
        ("data-analysis", "make a plot"),
        ("data-analysis", "average salary in an xlsx"),
        ("data-analysis", "find duplicates in my spreadsheet"),
        ("data-analysis", "总结一下这份数据文件"),
        ("pdf-processing", "combine these two pdfs"),
        ("pdf-processing", "填写这份表单"),
        ("pdf-processing", "turn the last page into a png"),
        ("code-review", "look over my pull request"),
        ("code-review", "帮我审查代码"),
        ("daily-news-digest", "what are today's headlines"),
        ("daily-news-digest", "今天的新闻"),
    ],
)
def test_skills_are_found_by_the_words_that_people_use(skill: str, query: str) -> None:
    """The skill that does the work is the first one found."""
    assert discover(SKILLS).search(query)[0].name == skill


@pytest.mark.processes
@pytest.mark.parametrize(
    ("script", "library", "heavy"),
    [
        (
            "data-analysis/scripts/query.py",
            "duckdb",
            ["matplotlib", "numpy", "python_calamine"],
        ),
        (
            "data-analysis/scripts/summary.py",
            "duckdb",
            ["matplotlib", "numpy", "python_calamine", "expressions"],
        ),
        ("pdf-processing/scripts/extract.py", "pypdf", ["pdfplumber", "pdfminer"]),
        ("pdf-processing/scripts/merge.py", "pypdf", ["pdfplumber", "pdfminer"]),
        (
            "pdf-processing/scripts/fill_form.py",
            "pypdf",
            ["pdfplumber", "pdfminer", "matplotlib"],
        ),
        ("pdf-processing/scripts/render.py", "pypdfium2", ["pdfplumber", "pdfminer"]),
        ("daily-news-digest/scripts/digest.py", "feedparser", ["requests", "numpy"]),
        (
            "code-review/scripts/changed_lines.py",
            "json",
            ["subprocess", "asyncio", "numpy"],
        ),
    ],
)
@pytest.mark.quick_cases(
    [
        "data-analysis/scripts/query.py-duckdb-heavy0",
        "data-analysis/scripts/summary.py-duckdb-heavy1",
        "pdf-processing/scripts/extract.py-pypdf-heavy2",
        "pdf-processing/scripts/merge.py-pypdf-heavy3",
        "code-review/scripts/changed_lines.py-json-heavy7",
    ]
)
def test_a_call_imports_what_it_uses_alone(
    script: str, library: str, heavy: list[str], tmp_path: Path
) -> None:
    """A refused call has loaded its one library; what only some calls need (drawing,
    workbooks, layout) is not.
    """
    path = SKILLS / script
    code = f"""if True:
        import atexit, runpy, sys
        atexit.register(lambda: print("|".join(sys.modules), file=sys.stderr))
        sys.path.insert(0, {str(path.parent)!r})
        runpy.run_path({str(path)!r}, run_name="__main__")"""

    done = subprocess.run(
        [sys.executable, "-c", code],
        input=b"[]",
        capture_output=True,
        cwd=tmp_path,
        check=False,
    )

    loaded = done.stderr.decode().split("|")
    assert done.returncode == 1 and library in loaded
    assert not set(heavy) & set(loaded)


@pytest.mark.parametrize(
    "path",
    [
        path
        for path in sorted(SKILLS.glob("*/scripts/*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ],
    ids=_label,
)
def test_examples_in_the_scripts_hold(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The doctests of the scripts' modules pass."""
    monkeypatch.syspath_prepend(str(path.parent))
    names = [module.stem for module in path.parent.glob("*.py")]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(
        sys.modules, path.stem, module
    )  # a dataclass looks its module up
    spec.loader.exec_module(module)

    result = doctest.testmod(module)

    for name in names:
        sys.modules.pop(name, None)
    assert result.attempted and not result.failed
