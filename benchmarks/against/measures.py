"""Measure one everyday operation in CPU seconds, as a separate program.

    python measures.py NAME DIRECTORY SKILLS

It runs with the library of any revision, so it uses only documented names of the
package. Preparation (making skills, filling the cache) is not counted.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURES = {
    "accept-1k": "accept a valid mapping of 1 KB, 2,000 calls",
    "accept-10k": "accept a valid mapping of 10 KB, 500 calls",
    "accept-1m": "accept a valid mapping of 1 MB, 5 calls",
    "text-1k": "accept a valid text of 1 KB, 2,000 calls",
    "text-1m": "accept a valid text of 1 MB, 5 calls",
    "comma-1m": "repair a comma at the end of a text of 1 MB, 2 calls",
    "repair": "repair a number in a text, 1,000 calls",
    "refuse": "refuse a call, 500 calls",
    "call-sync": "call a Python function, 1,000 calls",
    "tool": "call a LangChain tool, 500 calls",
    "cold": "discover, without a cache",
    "warm": "discover, with a cache",
    "one-edited": "discover, with one skill edited since",
    "query": "search, 100 queries",
    "first-search": "the first search of a process",
    "agent": "start an agent with the middleware",
    "list": "the command list",
    "call": "the command call, of a script",
}
"""The names of the measures, with descriptions."""

CONTRACT = {
    "version": "1.0.0",
    "input": {
        "type": "object",
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {
            "topics": {"type": "array", "items": {"type": "string"}},
            "count": {"type": "integer", "minimum": 1, "maximum": 50, "default": 5},
            "rows": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id"],
                    "additionalProperties": False,
                    "properties": {
                        "id": {"type": "integer"},
                        "name": {"type": "string"},
                        "score": {"type": "number"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        },
    },
}
TEXT = "---\nname: {name}\ndescription: {description}\n---\n# {name}\n\n{body}\n"
WORDS = [
    "convert",
    "extract",
    "merge",
    "split",
    "chart",
    "table",
    "invoice",
    "report",
    "image",
    "video",
    "audio",
    "text",
    "news",
    "mail",
    "calendar",
    "budget",
    "token",
    "schema",
    "diff",
    "lint",
    "test",
    "deploy",
    "search",
    "index",
    "cache",
]


def main() -> None:
    name, place, skills = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
    print(json.dumps(_RUN[name](place, skills)))


def _cpu(work: Callable[[], Any], times: int = 1) -> float:
    start = time.process_time()
    for _ in range(times):
        work()
    return time.process_time() - start


def _arguments(characters: int) -> dict[str, Any]:
    row = {"id": 1, "name": "a row of the table", "score": 0.5, "tags": ["a", "b"]}
    rows = max(1, characters // len(json.dumps(row)))
    return {"topics": ["AI", "space"], "count": 3, "rows": [dict(row)] * rows}


def _accept(characters: int, times: int) -> Callable[[Path, int], float]:
    def run(place: Path, skills: int) -> float:
        from skillruntime import Contract

        contract = Contract.from_dict(CONTRACT, name="digest")
        arguments = json.loads(json.dumps(_arguments(characters)))
        contract.accept(arguments)
        return _cpu(lambda: contract.accept(arguments), times)

    return run


def _accept_text(characters: int, times: int, ending: str) -> Callable[..., float]:
    def run(place: Path, skills: int) -> float:
        from skillruntime import Contract

        contract = Contract.from_dict(CONTRACT, name="digest")
        text = json.dumps(_arguments(characters))[:-1] + ending
        contract.accept(text)
        return _cpu(lambda: contract.accept(text), times)

    return run


def _repair(place: Path, skills: int) -> float:
    from skillruntime import Contract

    contract = Contract.from_dict(CONTRACT, name="digest")
    arguments = {**_arguments(200), "count": "7"}
    contract.accept(arguments)
    return _cpu(lambda: contract.accept(arguments), 1000)


def _refuse(place: Path, skills: int) -> float:
    from skillruntime import Contract, SkillInputError

    contract = Contract.from_dict(CONTRACT, name="digest")
    arguments = {**_arguments(200), "count": "many"}

    def refused() -> None:
        try:
            contract.accept(arguments)
        except SkillInputError:
            return
        raise AssertionError("it was taken")

    refused()
    return _cpu(refused, 500)


def _call_sync(place: Path, skills: int) -> float:
    from skillruntime import SkillRuntime

    runtime = SkillRuntime()
    runtime.implements("digest", contract=CONTRACT)(lambda arguments: {"n": 1})
    arguments = _arguments(200)
    runtime.call_sync("digest", arguments)
    return _cpu(lambda: runtime.call_sync("digest", arguments), 1000)


def _tool(place: Path, skills: int) -> float:
    from skillruntime import SkillRuntime
    from skillruntime.adapters.langchain import SkillTool

    runtime = SkillRuntime()
    runtime.implements("digest", contract=CONTRACT)(lambda arguments: {"n": 1})
    tool = SkillTool(runtime, "digest", description="Digest")
    call = {"name": "digest", "args": _arguments(200), "id": "1", "type": "tool_call"}
    tool.invoke(call)
    return _cpu(lambda: tool.invoke(call), 500)


def _made(place: Path, skills: int) -> Path:
    """Write *skills* skills below *place*, the same ones each time."""
    root = place / "skills"
    for number in range(skills):
        words = [WORDS[(number * step) % len(WORDS)] for step in (1, 3, 7, 11, 13)]
        name = f"{words[0]}-{words[1]}-{number}"
        directory = root / name
        directory.mkdir(parents=True)
        description = f"Helps to {' and '.join(words)}. Use when asked to {words[2]}."
        body = "\n".join(f"- Step {step}: {' '.join(words)}" for step in range(20))
        text = TEXT.format(name=name, description=description, body=body)
        (directory / "SKILL.md").write_text(text, encoding="utf-8")
    return root


def _discovered(root: Path) -> int:
    from skillruntime import discover

    return len(discover(root))


def _in_process(code: str, *arguments: str) -> float:
    """Return the CPU seconds of a new process that runs *code*."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *arguments], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


_DISCOVER = "import sys; from skillruntime import discover; len(discover(sys.argv[1]))"
_SEARCH = (
    "import sys; from skillruntime import discover; "
    "discover(sys.argv[1]).search('extract tables from an invoice')"
)


def _cold(place: Path, skills: int) -> float:
    return _in_process(_DISCOVER, str(_made(place, skills)))


def _warm(place: Path, skills: int) -> float:
    root = str(_made(place, skills))
    _in_process(_DISCOVER, root)
    _in_process(_DISCOVER, root)
    return _in_process(_DISCOVER, root)


def _one_edited(place: Path, skills: int) -> float:
    root = _made(place, skills)
    _in_process(_DISCOVER, str(root))
    _in_process(_DISCOVER, str(root))
    file = next(iter(sorted(root.iterdir()))) / "SKILL.md"
    file.write_text(file.read_text("utf-8").replace("Helps", "Serves"), "utf-8")
    os.utime(file, (1, 1))
    return _in_process(_DISCOVER, str(root))


def _query(place: Path, skills: int) -> float:
    from skillruntime import discover

    catalog = discover(_made(place, skills))
    catalog.search("extract tables")
    queries = [f"{first} a {second}" for first in WORDS[:10] for second in WORDS[10:20]]
    start = time.process_time()
    for query in queries:
        catalog.search(query)
    return time.process_time() - start


def _first_search(place: Path, skills: int) -> float:
    root = str(_made(place, skills))
    _in_process(_SEARCH, root)
    return _in_process(_SEARCH, root)


_AGENT = (
    "import sys; from skillruntime.adapters.agent_middleware import SkillMiddleware; "
    "from skillruntime import SkillRuntime, discover; "
    "SkillMiddleware(SkillRuntime(discover(sys.argv[1], trusted=True)))"
)


def _agent(place: Path, skills: int) -> float:
    root = str(_made(place, skills))
    _in_process(_AGENT, root)
    return _in_process(_AGENT, root)


def _command(place: Path, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "skillruntime", *arguments],
        check=True,
        stdout=subprocess.DEVNULL,
        cwd=place,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _list(place: Path, skills: int) -> float:
    root = str(_made(place, skills))
    _command(place, "list", root)
    return _command(place, "list", root)


def _call(place: Path, skills: int) -> float:
    directory = place / "skills" / "echo"
    (directory / "scripts").mkdir(parents=True)
    text = TEXT.format(name="echo", description="Echoes.", body="Call it.")
    (directory / "SKILL.md").write_text(text, encoding="utf-8")
    contract = {**CONTRACT, "run": {"script": "scripts/echo.py"}}
    (directory / "contract.json").write_text(json.dumps(contract), encoding="utf-8")
    script = "import sys\nprint(sys.stdin.read())\n"
    (directory / "scripts" / "echo.py").write_text(script, encoding="utf-8")
    arguments = ["call", "echo", '{"topics": ["AI"]}', "--trust"]
    arguments += ["--skills", str(directory.parent)]
    _command(place, *arguments)
    return _command(place, *arguments)


_RUN: dict[str, Callable[[Path, int], float]] = {
    "accept-1k": _accept(1_000, 2_000),
    "accept-10k": _accept(10_000, 500),
    "accept-1m": _accept(1_000_000, 5),
    "text-1k": _accept_text(1_000, 2_000, "}"),
    "text-1m": _accept_text(1_000_000, 5, "}"),
    "comma-1m": _accept_text(1_000_000, 2, ",}"),
    "repair": _repair,
    "refuse": _refuse,
    "call-sync": _call_sync,
    "tool": _tool,
    "cold": _cold,
    "warm": _warm,
    "one-edited": _one_edited,
    "query": _query,
    "first-search": _first_search,
    "agent": _agent,
    "list": _list,
    "call": _call,
}


if __name__ == "__main__":
    main()
