"""An invalid contract affects only its own skill, at every entry of the library."""

from __future__ import annotations

import contextlib
import io
import json
import logging
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from skillruntime.catalog import discover, validate
from skillruntime.cli import main
from skillruntime.runtime import SkillRuntime
from tests import needs

GOOD = {
    "version": "1.0.0",
    "description": "Adds",
    "input": {"type": "object", "properties": {"a": {"type": "string"}}},
    "run": {"script": "scripts/add.py"},
}
ODD: list[Any] = [
    *(
        5,
        -1,
        None,
        True,
        "",
        "x",
        "\ud800",
        [],
        [1],
        {},
        {"a": 1},
        float("nan"),
        float("inf"),
        {"properties": 5},
    ),
    *(
        {"properties": {"a": 5}},
        {"type": 5},
        {"type": "array"},
        {"type": ["object", 5]},
        {"required": "a"},
        {"enum": 5},
    ),
    *(
        {"pattern": "("},
        {"items": 5},
        {"allOf": [{"$ref": "#"}]},
        {"oneOf": []},
        {"$defs": 5},
        {"$id": "::"},
        {"if": 5},
    ),
    *(
        {"$ref": "#/properties/a"},
        {"$ref": 5},
        {"$dynamicRef": "#x"},
        {"$schema": 5},
        {"$anchor": 5},
        {"multipleOf": 0},
    ),
    *(
        {"required": ["a"] * 5000},
        {"properties": {"\ud800": {}}},
        {"patternProperties": {"(": {}}},
        {"minimum": "x"},
    ),
]
KEYS = [
    "version",
    "description",
    "input",
    "output",
    "run",
    "requires",
    "annotations",
    "migrations",
    "policy",
    "name",
    "title",
    "definitions",
    "$schema",
]


def contracts() -> list[Any]:
    """Return contracts with an odd value at one place each."""
    found: list[Any] = list(ODD)
    for odd in ODD:
        found += [{**GOOD, key: odd} for key in KEYS]
        found.append({**GOOD, "input": {"type": "object", "properties": {"a": odd}}})
        found += [
            {**GOOD, "run": {"script": "scripts/add.py", key: odd}}
            for key in ("timeout_seconds", "environment")
        ]
        found.append(
            {
                **GOOD,
                "requires": dict.fromkeys(
                    ("runtime", "commands", "packages", "environment"), odd
                ),
            }
        )
        found.append({**GOOD, "annotations": {"read_only": odd}})
        step = {"from": "1.x", "to": "2.0.0", "accepts": {}, "steps": [odd]}
        found += [
            {**GOOD, "version": "2.0.0", "migrations": [each]}
            for each in (odd, step, {**step, "accepts": odd})
        ]
    return found


# All of them take minutes: SKILLRUNTIME_FUZZ, as for the other fuzzers, says how many.
SOME = random.Random(7).sample(
    contracts(), min(int(os.environ.get("SKILLRUNTIME_FUZZ", "40")), len(contracts()))
)
PROPERTIES_5 = {**GOOD, "input": {"type": "object", "properties": 5}}


def run(*arguments: str) -> str:
    """Run the command line and return what it prints; only success and "there are
    errors" are expected.
    """
    needs.package("click")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        try:
            main(arguments)
        except SystemExit as end:
            assert end.code in (0, 1), arguments
    return printed.getvalue()


def langchain_tools(runtime: SkillRuntime) -> list[str]:
    langchain = needs.package("skillruntime.adapters.langchain")
    return [tool.name for tool in langchain.SkillToolkit(runtime).get_tools()]


def mcp_tools(runtime: SkillRuntime) -> list[str]:
    mcp = needs.package("mcp")
    import anyio

    from skillruntime.adapters.mcp import to_server

    async def listed() -> list[str]:
        async with mcp.Client(to_server(runtime)) as client:
            return [tool.name for tool in (await client.list_tools()).tools]

    return anyio.run(listed)


def published(runtime: SkillRuntime) -> list[str]:
    from skillruntime.server import serve_catalog

    return [
        each.descriptor.name
        for each in serve_catalog(runtime, base_url="https://skills.example")
    ]


ENTRIES: dict[str, Callable[[SkillRuntime], list[str]]] = {
    "callable_names": lambda runtime: runtime.callable_names(),
    "get_tools": langchain_tools,
    "MCP": mcp_tools,
    "serve": published,
    "list": lambda runtime: run(
        "list", "--skills", runtime.catalog.roots[0].path
    ).split(),
}


@pytest.fixture
def skills(tmp_path: Path) -> Iterator[Path]:
    """Return a directory with a valid skill next to one that gets the contracts."""
    for name in ("good", "odd"):
        (tmp_path / name / "scripts").mkdir(parents=True)
        (tmp_path / name / "scripts" / "add.py").write_text("print('{}')")
        (tmp_path / name / "SKILL.md").write_text(
            f"---\nname: {name}\ndescription: Is {name}. Use it.\n---\nFollow.\n"
        )
        (tmp_path / name / "contract.json").write_text(json.dumps(GOOD))
    logging.disable(logging.CRITICAL)
    yield tmp_path
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_other_skills_stay(skills: Path, entry: str) -> None:
    """Whatever one contract contains, the valid skill is offered, and the instructions
    of the other can be loaded.
    """
    for contract in [PROPERTIES_5, *SOME]:
        (skills / "odd" / "contract.json").write_text(
            json.dumps(contract), encoding="utf-8"
        )
        runtime = SkillRuntime(discover(skills, trusted=True, use_index=False))

        assert "good" in ENTRIES[entry](runtime), contract
        assert "Follow." in runtime.session().activate("odd"), contract


def test_the_commands_report_the_contract(skills: Path) -> None:
    """`validate`, `show`, `unmet` and `diagnostics` answer for the skill itself."""
    for contract in [PROPERTIES_5, *SOME]:
        (skills / "odd" / "contract.json").write_text(
            json.dumps(contract), encoding="utf-8"
        )
        catalog = discover(skills, trusted=True, use_index=False)

        assert [Path(each.path).parent.name for each in validate(skills)] == [
            "good",
            "odd",
        ]
        assert run("validate", str(skills), "--json")
        assert run("show", "odd", "--skills", str(skills))
        catalog.unmet("odd")
        assert isinstance(catalog.activate("odd").diagnostics, tuple)


def test_an_unforeseen_error_is_a_diagnostic(skills: Path) -> None:
    """The contract's own tools are absent, and its error says that it is invalid."""
    (skills / "odd" / "contract.json").write_text(json.dumps(PROPERTIES_5))

    skill = discover(skills).activate("odd")

    assert dict(skill.contracts) == {}
    assert [(each.rule, each.severity.value) for each in skill.diagnostics] == [
        ("contract-invalid", "error")
    ]


def test_a_link_to_a_contract_is_not_broken(skills: Path) -> None:
    """A contract is not a resource for a model, but it is a file that a page may refer
    to.
    """
    (skills / "odd" / "contract.json").write_text(
        '{"input": {"type": "object"}}', encoding="utf-8"
    )
    with (skills / "odd" / "SKILL.md").open("a", encoding="utf-8") as file:
        file.write("\nSee [its contract](contract.json) and [more](more.md).\n")

    found = [
        each.message
        for each in validate(skills / "odd")[0].diagnostics
        if each.rule == "link-broken"
    ]

    assert found == ["the link does not resolve: more.md"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_a_contract_in_utf_16_loads_as_skill_md_does(
    skills: Path, encoding: str
) -> None:
    """As Windows PowerShell writes it, with its mark; a warning says so."""
    text = '{"description": "Länge", "input": {"type": "object"}}'
    mark = "\ufeff" if encoding != "utf-16" else ""
    (skills / "odd" / "contract.json").write_bytes((mark + text).encode(encoding))

    skill = discover(skills).activate("odd")

    assert skill.contract("odd").description == "Länge"
    assert [each.rule for each in skill.diagnostics] == ["not-utf-8"]
