"""What skills add to an agent's model calls, in time and tokens: our middleware and
deepagents' on the same skills.

``python -m benchmarks.agent_loop DIRECTORY [--skills 10 100 1000] [--turns 10]
[--json]``. A scripted model takes no time, so what is measured is the host's part: a
bare agent, then the same agent with each middleware, in one process, in turn;
milliseconds of CPU a model call, the median. Tokens are those of the first request
(system message, tools) above the bare agent's, by tiktoken.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from skillruntime import SkillRuntime, discover
from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.testing import ScriptedChatModel, call_message
from skillruntime.tokens import count, count_tools

RUNS = 7


@tool
def look(text: str) -> str:
    """Look at a text."""
    return text


def main() -> None:
    """Print one line for each size and middleware."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path, help="a directory of skills")
    parser.add_argument("--skills", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--turns", type=int, default=10, help="model calls in a run")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    paths = sorted(path.parent for path in options.directory.rglob("SKILL.md"))
    rows = []
    for size in options.skills:
        if size > len(paths):
            print(f"({len(paths)} skills there; {size} left out)")
            continue
        with tempfile.TemporaryDirectory() as directory:
            root = Path(directory) / "skills"
            for path in paths[:size]:
                with contextlib.suppress(shutil.Error):
                    shutil.copytree(path, root / path.name, dirs_exist_ok=True)
            rows += measure(root, size, options.turns)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(
        f"{'skills':>7} {'agent':<28} {'CPU ms a call':>16} {'added ms':>9} "
        f"{'x bare':>7} {'added tokens':>13}"
    )
    for row in rows:
        print(
            f"{row['skills']:>7} {row['agent']:<28} {row['ms']:>16.2f} "
            f"{row['added_ms']:>9.2f} {row['ratio']:>7.2f} {row['added_tokens']:>13,}"
        )


def measure(root: Path, size: int, turns: int) -> list[dict[str, Any]]:
    """Return a row for the bare agent and for each middleware that is installed."""
    runtime = SkillRuntime(discover(root))
    first = next(iter(runtime.catalog))
    kinds: dict[str, Callable[[], list[Any]]] = {
        "bare": list,
        "skillruntime": lambda: [SkillMiddleware(runtime)],
        "skillruntime, no refresh": lambda: [SkillMiddleware(runtime, refresh=False)],
        "skillruntime, no budget": lambda: [
            SkillMiddleware(runtime, catalog_tokens=None)
        ],
    }
    with contextlib.suppress(ImportError):
        from deepagents.backends import FilesystemBackend
        from deepagents.middleware.skills import SkillsMiddleware

        backend = FilesystemBackend(root_dir=str(root), virtual_mode=False)
        kinds["deepagents"] = lambda: [
            SkillsMiddleware(backend=backend, sources=[str(root)])
        ]
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    tokens: dict[str, int] = {}
    for run in range(RUNS + 1):
        for kind, make in kinds.items():
            loads = kind.startswith("skillruntime")
            opening = (
                call_message(("load_skill", {"name": first}))
                if loads
                else call_message(("look", {"text": "a"}))
            )
            replies = [
                opening,
                *(
                    call_message(("look", {"text": "a"}), turn=n)
                    for n in range(2, turns)
                ),
            ]
            model = ScriptedChatModel(replies=[*replies, AIMessage("Done.")])
            agent = create_agent(
                model, [look], middleware=make(), system_prompt="Be brief."
            )
            agent.get_graph()
            began = time.process_time()
            agent.invoke({"messages": [HumanMessage("Go.")]}, {"recursion_limit": 200})
            if run:  # the first warms up
                times[kind].append((time.process_time() - began) / turns * 1000)
            tokens[kind] = request_tokens(model)
    bare = statistics.median(times["bare"])
    return [
        {
            "skills": size,
            "agent": kind,
            "ms": statistics.median(measured),
            "added_ms": statistics.median(measured) - bare,
            "ratio": statistics.median(measured) / bare,
            "added_tokens": tokens[kind] - tokens["bare"],
        }
        for kind, measured in times.items()
    ]


def request_tokens(model: ScriptedChatModel) -> int:
    """Return the tokens of the system message and the tools of the first request."""
    definitions = [convert_to_openai_tool(each) for each in model.tools]
    return count(model.received[0][0].text).tokens + count_tools(definitions).tokens


if __name__ == "__main__":
    main()
