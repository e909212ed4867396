"""What it takes until an agent with many skills is ready: CPU seconds and memory, cold,
warm, and in deepagents.

``python benchmarks/ready_agent.py FRONTMATTERS.jsonl.gz [--skills 700 10000] [--peer
PYTHON] [--rounds 3]``. In place of the file, a directory of real skills is measured as
it is. Otherwise the skills have real frontmatters (see ``load.py --shapes``); a quarter
of them has one to four argparse scripts without a contract. Each figure is that of a
process of its own, without its imports, the median and the worst of the rounds: cold
with an empty cache directory, warm with that of an earlier process. ``toolkit`` has the
default style, ``typed`` a tool for each callable, ``schemas`` reads the contracts of
all of them too, and ``bare tools`` are LangChain's own, as many. ``--peer`` is an
interpreter in whose environment deepagents is installed, since its dependencies need
not fit this one.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Literal

TARGETS = {
    ("toolkit", 10_000, "cold"): (5.0, 100),
    ("toolkit", 10_000, "warm"): (0.5, 100),
    ("typed", 10_000, "cold"): (25.0, 200),
    ("typed", 10_000, "warm"): (5.0, 150),
    ("middleware", 700, "cold"): (0.4, 40),
    ("middleware", 700, "warm"): (0.4, 40),
}
"""CPU seconds and MB."""

FLAGS = (
    "type=int, default=3",
    "choices=['a', 'b']",
    "action='store_true'",
    "nargs='*', default=[]",
)


def main() -> None:
    """Build the trees, measure each step in processes of their own, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("shapes", type=Path)
    parser.add_argument("--skills", type=int, nargs="+", default=[700, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer", help="an interpreter that has deepagents")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--step", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.step:
        print(json.dumps(STEPS[options.step](str(options.shapes))))
        return
    rows = []
    with tempfile.TemporaryDirectory(prefix="ready-") as directory:
        if options.shapes.is_dir():
            # A copy, so that no cache file of another root is found.
            root = Path(shutil.copytree(options.shapes, Path(directory) / "real"))
            rows += measure(root, len(list(root.rglob("SKILL.md"))), options)
        for size in options.skills if options.shapes.is_file() else ():
            root = make_tree(Path(directory) / str(size), size, options.shapes)
            rows += measure(root, size, options)
    print(
        f"{'skills':>7} {'what':<16} {'CPU s':>7} {'worst':>7} {'MB':>6} {'worst':>7} "
        f"{'tools':>6}  target"
    )
    for row in rows:
        limit = TARGETS.get((row["what"], row["skills"], row["start"]))
        target = "" if limit is None else f"<= {limit[0]} s, {limit[1]} MB"
        print(
            f"{row['skills']:>7} {row['what'] + ', ' + row['start']:<16} "
            f"{row['seconds']:>7.2f} {row['worst_seconds']:>7.2f} {row['mb']:>6.0f} "
            f"{row['worst_mb']:>7.0f} {row['tools']:>6}  {target}"
        )
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


def measure(root: Path, size: int, options: argparse.Namespace) -> list[dict[str, Any]]:
    """Return a row for each step, cold and warm; the steps take turns."""
    cache = root.parent / f"cache-{size}"
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    for _ in range(options.rounds):
        for step in (
            "toolkit",
            "typed",
            "schemas",
            "bare tools",
            "middleware",
            "deepagents",
        ):
            python = options.peer if step == "deepagents" else sys.executable
            if python is None:
                continue
            shutil.rmtree(cache, ignore_errors=True)
            for start in ("cold", "warm"):
                found.setdefault((step, start), []).append(
                    run(step, root, cache, python)
                )
    return [
        {
            "skills": size,
            "what": step,
            "start": start,
            "seconds": statistics.median(each["seconds"] for each in rounds),
            "worst_seconds": max(each["seconds"] for each in rounds),
            "mb": statistics.median(each["mb"] for each in rounds),
            "worst_mb": max(each["mb"] for each in rounds),
            "tools": rounds[0]["tools"],
        }
        for (step, start), rounds in found.items()
    ]


def run(step: str, root: Path, cache: Path, python: str) -> dict[str, float]:
    """Return what *step* measured, in a process of its own."""
    command = [python, __file__, str(root), "--step", step]
    environment = {
        **os.environ,
        "SKILLRUNTIME_CACHE": str(cache),
        "PYTHONWARNINGS": "ignore",
    }
    answer = subprocess.run(
        command,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    found: dict[str, float] = json.loads(answer.stdout)
    return found


def make_tree(root: Path, size: int, shapes: Path) -> Path:
    """Write *size* skills, a quarter of them with scripts."""
    import load

    options = argparse.Namespace(shapes=shapes, corpus=None)
    load.make_skills(root, size, options)
    for file in root.glob("*/SKILL.md"):
        # Some of the dates have a thirteenth month, at which deepagents' reader raises
        # for all skills.
        file.write_bytes(
            re.sub(rb"\d{4}-\d{1,2}-\d{1,2}[^\n]*", b"2026-01-31", file.read_bytes())
        )
    rng = random.Random(9)
    for directory in sorted(root.iterdir()):
        if rng.random() < 0.25:
            (directory / "scripts").mkdir()
            for number in range(rng.choice([1, 1, 2, 3, 4])):
                name = f"{rng.choice(load.WORDS)}{number}.py"
                (directory / "scripts" / name).write_text(
                    script(rng, load.WORDS), encoding="utf-8"
                )
    return root


def script(rng: random.Random, words: list[str]) -> str:
    """Return a script of sixty lines with a parser, as most real ones are."""
    helpers = [
        f"def {word}(path):\n"
        "    return [line for line in open(path).read().splitlines() if line]\n"
        for word in rng.choices(words, k=8)
    ]
    flags = [
        f"    parser.add_argument('--{word}', {rng.choice(FLAGS)}, help='{word} it')"
        for word in rng.sample(words, 6)
    ]
    head = ["import argparse", "import json", "", *helpers, "", "def main():"]
    description = " ".join(rng.choices(words, k=8))
    parser = [
        f"    parser = argparse.ArgumentParser(description='{description}')",
        "    parser.add_argument('path')",
    ]
    return "\n".join(
        [
            *head,
            *parser,
            *flags,
            "    print(json.dumps(vars(parser.parse_args())))",
            "",
            "main()",
            "",
        ]
    )


def measured(work: Callable[[], int]) -> dict[str, float]:
    """Return what *work* took; it returns the number of tools."""
    before, started = resident(), time.process_time()
    tools = work()
    return {
        "seconds": time.process_time() - started,
        "mb": (resident() - before) / 2**20,
        "tools": tools,
    }


def resident() -> int:
    """Return the bytes of memory that the process holds."""
    import gc

    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def toolkit(
    root: str,
    style: Literal["typed", "generic"] | None = None,
    *,
    with_schemas: bool = False,
) -> Any:
    """Measure `SkillToolkit`: discovery, the tools and the system prompt; with the
    schemas all contracts are read.
    """
    from skillruntime import SkillRuntime, discover
    from skillruntime.adapters.langchain import SkillToolkit

    def ready() -> int:
        made = SkillToolkit(SkillRuntime(discover(root)), style=style)
        made.system_prompt()
        kept.append(tools := made.get_tools())
        return len([tool.args_schema for tool in tools] if with_schemas else tools)

    kept: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return measured(ready)


def bare_tools(root: str) -> dict[str, float]:
    """Measure what LangChain itself takes for as many tools, each with a small schema
    of its own.
    """
    from langchain_core.tools import BaseTool

    class Bare(BaseTool):
        def _run(self) -> None: ...

    names = [
        f"{path.parent.parent.name}__{path.stem}"[:64]
        for path in Path(root).glob("*/scripts/*.py")
    ]

    def made() -> int:
        kept.extend(
            Bare(name=name, description="Does it.", args_schema={"type": "object"})
            for name in names
        )
        return len(kept)

    kept: list[Any] = []
    return measured(made)


def middleware(root: str) -> dict[str, float]:
    """Measure `SkillMiddleware` up to the answer of a first model call."""
    from skillruntime import SkillRuntime, discover
    from skillruntime.adapters.agent_middleware import SkillMiddleware

    return first_answer(lambda: SkillMiddleware(SkillRuntime(discover(root))))


def deepagents(root: str) -> dict[str, float]:
    """Measure the skills of deepagents up to the answer of a first model call."""
    from deepagents.backends import FilesystemBackend
    from deepagents.middleware.skills import SkillsMiddleware

    backend = FilesystemBackend(root_dir=root, virtual_mode=False)
    return first_answer(lambda: SkillsMiddleware(backend=backend, sources=[root]))


def first_answer(make: Callable[[], Any]) -> dict[str, float]:
    """Measure an agent with the middleware that *make* returns, above one without."""
    from langchain.agents import create_agent
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage, HumanMessage

    class Model(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    def answered(*middlewares: Any) -> int:
        agent = create_agent(
            Model(messages=iter([AIMessage("Done.")])), middleware=middlewares
        )
        agent.invoke({"messages": [HumanMessage("Go.")]})
        return sum(len(getattr(each, "tools", ())) for each in middlewares)

    answered()  # what every agent loads
    return measured(lambda: answered(make()))


STEPS: dict[str, Callable[[str], dict[str, float]]] = {
    "toolkit": toolkit,
    "typed": partial(toolkit, style="typed"),
    "schemas": partial(toolkit, style="typed", with_schemas=True),
    "bare tools": bare_tools,
    "middleware": middleware,
    "deepagents": deepagents,
}


if __name__ == "__main__":
    main()
