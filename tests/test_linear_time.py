"""Bytes from outside are read in linear time: by every regular expression, and by every
reader.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime import discover
from skillruntime.adapters.mcp_proxy.client_files import ClientFileError, wrapped
from skillruntime.adapters.mcp_proxy.messages import quick_response, read_messages
from skillruntime.adapters.mcp_proxy.transports.remote import encode_value
from skillruntime.catalog.checks.lockfile import read_lock
from skillruntime.catalog.visibility import (
    escaped,
    framed,
    hidden_characters,
    visible_line,
)
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime.presentation.skill_directory import SkillDirectory
from skillruntime.runtime.scripts.result import (
    parse_text_output,
    reported_failure,
    text_besides_result,
)
from tests.linear_time import (
    COMMON_SHAPES,
    SHAPES,
    Expression,
    expressions,
    growth,
    texts_for,
)
from tests.mcp_proxy.messages import DIGEST, call, known
from tests.remote.parts import read_descriptor_file

SHORT_TEXT = {
    "skillruntime.contract.text_beside._ENDED": "the last 60 characters",
    "skillruntime.contract.text_beside._NUMBER_BEFORE": "40 characters",
}
"""Expressions that meet a few characters only, or our own text."""


PACKAGES = [
    "adapters",
    "catalog",
    "cli",
    "compatibility",
    "contract",
    "derive",
    "remote",
    "runtime",
    "server",
    "testing",
    "tokens",
]


@pytest.fixture(scope="module")
def found() -> dict[str, list[Expression]]:
    """Every expression, by its package."""
    by_package: dict[str, list[Expression]] = {}
    for each in expressions()[0]:
        by_package.setdefault(each.place.split(".")[1], []).append(each)
    return by_package


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.quick_cases(["adapters", "cli", "compatibility"])
def test_every_expression_takes_linear_time(
    package: str, found: dict[str, list[Expression]]
) -> None:
    """On texts that repeat one thing, and for each repetition in it on a text that
    repeats what it repeats.
    """
    slow = []
    for expression in found[package]:
        shapes = {name: SHAPES[name] for name in COMMON_SHAPES}
        shapes |= {
            f"its own {number}": shape
            for number, shape in enumerate(texts_for(expression.pattern))
        }
        for name, shape in shapes.items():
            if expression.place in SHORT_TEXT:
                continue
            encode = encoded if isinstance(expression.pattern.pattern, bytes) else str
            if excess := growth(
                expression.use,
                lambda n: encode(shape(n)),  # noqa: B023
                size=4096,
                quick=0.008,
            ):
                slow.append(f"{expression.place}, {name} ({shape(20)!r}): {excess}")
                break

    assert slow == []


def test_every_expression_is_found(found: dict[str, list[Expression]]) -> None:
    """Those of each package, whether they are constants of a module or stand in a
    function.
    """
    assert sorted(found) == PACKAGES
    assert sum(map(len, found.values())) > 200


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


Reader = Callable[[str], object]
HEAD = "---\nname: pdf\ndescription: "
PLAIN = f"{HEAD}Reads PDFs.\n---\nRead.\n"


def in_skill_file(directory: Path, before: str, after: str) -> Reader:
    """Return the discovery and activation of a skill whose SKILL.md has the text at one
    place.
    """

    def read(text: str) -> None:
        directory.joinpath("SKILL.md").write_bytes(encoded(f"{before}{text}{after}"))
        catalog = discover(directory, use_index=False)
        assert len(catalog) + len(catalog.diagnostics) > 0
        catalog.render(1_000)
        for name in catalog:
            skill = catalog.activate(name)
            framed("skill", skill.body, name=name)
            assert skill.diagnostics is not None
            assert skill.frontmatter is not None

    return read


def in_file_of_skill(directory: Path, name: str, write: Callable[[str], str]) -> Reader:
    """Return the reading of the contracts and the descriptor of a skill, one of which
    has the text.
    """
    directory.joinpath("SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads PDFs.\n---\nRead.\n", encoding="utf-8"
    )

    def read(text: str) -> None:
        directory.joinpath(name).write_bytes(encoded(write(text)))
        skill = discover(directory, use_index=False).activate("pdf")
        assert skill.contracts is not None
        with contextlib.suppress(SkillRuntimeError):
            read_descriptor_file(skill)
        assert skill.diagnostics is not None

    return read


def in_lockfile(path: Path) -> Reader:
    def read(text: str) -> None:
        path.write_bytes(encoded(text))
        with contextlib.suppress(SkillRuntimeError):
            read_lock(str(path))

    return read


def in_script(directory: Path, name: str, before: str, after: str) -> Reader:
    directory.joinpath("SKILL.md").write_text(
        "---\nname: pdf\ndescription: Reads PDFs.\n---\nRead.\n", encoding="utf-8"
    )
    directory.joinpath("scripts").mkdir()

    def read(text: str) -> None:
        directory.joinpath("scripts", name).write_bytes(
            encoded(f"{before}{text}{after}")
        )
        assert (
            discover(directory, use_index=False).activate("pdf").contracts is not None
        )

    return read


def contract_with(text: str) -> str:
    words = {
        "type": "string",
        "description": text,
        "default": text,
        "enum": [text],
        "pattern": "^a$",
    }
    return json.dumps(
        {
            "version": "1.0.0",
            "description": text,
            "input": {"type": "object", "properties": {"a": words}},
        }
    )


def variables(text: str) -> None:
    place = SkillDirectory(Path("/a b"), Path("/w"), {"SKILL_DIR": "/a b"})
    place.unfilled(place.filled(text + "$SKILL_DIR/a " * (len(text) // 12)))


def result(text: str) -> None:
    parse_text_output(encoded(text))
    reported_failure(text)
    text_besides_result(text)
    visible_line(text)
    escaped(text)
    hidden_characters(text)


def message(text: str) -> None:
    for frame in (
        encoded(text),
        json.dumps({"jsonrpc": "2.0", "id": text, "result": {text: [text]}}).encode(),
    ):
        quick_response(frame)
        with contextlib.suppress(ValueError):
            read_messages(frame)


def call_through_the_proxy(text: str) -> None:
    session = known({"name": text[:200], "inputSchema": DIGEST["inputSchema"]}, DIGEST)
    session.from_client(call(text))
    session.from_client(call(json.dumps({"topic": text, "limit": text}), name="Digest"))
    session.from_client(call("{}", name=json.dumps(text)[1:-1]))
    session.from_client(call('{"topic": "a"}', id="8"))
    error = {"code": -32602, "message": text}
    session.from_server(
        json.dumps({"jsonrpc": "2.0", "id": 8, "error": error}).encode()
    )


def in_client_file(text: str) -> None:
    for file in (text, f'{{"mcpServers": {text}'):
        with contextlib.suppress(ClientFileError):
            wrapped(file)


READERS: dict[str, Callable[[Path], Reader]] = {
    "SKILL.md": lambda at: in_skill_file(at, "", ""),
    "frontmatter": lambda at: in_skill_file(at, f"{HEAD}d\n", "\n---\nRead.\n"),
    "description": lambda at: in_skill_file(at, HEAD, "\n---\nRead.\n"),
    "quoted description": lambda at: in_skill_file(at, f'{HEAD}"', '"\n---\nRead.\n'),
    "metadata": lambda at: in_skill_file(
        at, f"{HEAD}d\nmetadata:\n  version: ", "\n---\nRead.\n"
    ),
    "instructions": lambda at: in_skill_file(at, f"{HEAD}d\n---\n", ""),
    "contract.json": lambda at: in_file_of_skill(at, "contract.json", str),
    "words of a contract": lambda at: in_file_of_skill(
        at, "contract.json", contract_with
    ),
    "contract.yaml": lambda at: in_file_of_skill(
        at, "contract.yaml", lambda text: f"version: 1.0.0\ninput:\n  {text}\n"
    ),
    "descriptor.json": lambda at: in_file_of_skill(
        at, "descriptor.json", contract_with
    ),
    "skills-lock.json": lambda at: in_lockfile(at / "skills-lock.json"),
    "Python script": lambda at: in_script(
        at, "run.py", '"""Usage: ', '"""\nimport sys\nprint(sys.argv[1])\n'
    ),
    "shell script": lambda at: in_script(
        at, "run.sh", "#!/bin/sh\n# Usage: ", '\necho "$1"\n'
    ),
    "Node script": lambda at: in_script(
        at, "run.js", "// Usage: ", "\nconsole.log(process.argv[2]);\n"
    ),
    "shell code": lambda at: in_script(at, "run.sh", "#!/bin/sh\n", '\necho "$1"\n'),
    "Node code": lambda at: in_script(
        at, "run.js", "", "\nconsole.log(process.argv[2]);\n"
    ),
    "result": lambda at: result,
    "variables": lambda at: variables,
    "MCP frame": lambda at: message,
    "MCP call": lambda at: call_through_the_proxy,
    "MCP client's file": lambda at: in_client_file,
    "HTTP header": lambda at: encode_value,
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.quick_cases(
    [
        "SKILL.md",
        "frontmatter",
        "metadata",
        "words of a contract",
        "descriptor.json",
        "Node script",
        "result",
        "variables",
        "MCP frame",
    ]
)
def test_every_reader_takes_linear_time(name: str, tmp_path: Path) -> None:
    """Each of the hostile shapes, at each place where a third party's text can
    stand.
    """
    read = READERS[name](tmp_path)

    slow = {
        shape: excess
        for shape, text in SHAPES.items()
        if (excess := growth(read, text, size=4096, quick=0.02))
    }

    assert slow == {}
