"""What each agent framework does with the calls that models get wrong: every cell is
run, nothing is read off a page.

    python benchmarks/comparison.py --environments DIRECTORY
    python benchmarks/comparison.py --environments DIRECTORY --skills PATH

DIRECTORY gets a virtual environment for each peer (with network, once); each peer's own
agent loop then answers a scripted model that calls one tool, `forecast(city: str, days:
int = 3, stops: list[str] = [])`.

With ``--skills``, a directory of skills or an archive of them, it counts the text about
skills in each request instead, in tokens of gpt-4o, for the first of these skills, the
first 100 and all.

A cell says what happened: *right* (the tool ran with what was meant), *refused* (the
tool did not run, and the model got the reason), *wrong* (the tool ran with something
else, which follows), *lost* (the tool did not run, and the model got no answer), *ends*
(an exception ended the run), *not seen* (the framework takes calls as objects only).
"""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent

PEERS = {
    "skillruntime": ("skillruntime_agent", ""),
    "LangChain": ("langchain_agent", "langchain"),
    "deepagents": ("deepagents_agent", "deepagents"),
    "pydantic-ai": ("pydantic_ai_agent", "pydantic-ai-skills"),
    "agno": ("agno_agent", "agno"),
    "strands": ("strands_agent", "strands-agents"),
    "ADK": ("adk_agent", "google-adk"),
    "agent-framework": ("agent_framework_agent", "agent-framework"),
    "agent-airlock": ("airlock_agent", "agent-airlock"),
}
"""A column's heading -> its module in `comparison_peers`, and the package to install
for it.
"""

# What the model writes, in words; its text; what the tool must receive, or None if it
# must not run.
CASES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("a valid call", '{"city": "Rome", "days": 5}', {"city": "Rome", "days": 5}),
    (
        "an integer in quotes",
        '{"city": "Rome", "days": "5"}',
        {"city": "Rome", "days": 5},
    ),
    (
        "a Python list in a string",
        """{"city": "Rome", "stops": "['Pisa']"}""",
        {"city": "Rome", "stops": ["Pisa"]},
    ),
    (
        "null for a parameter with a default",
        '{"city": "Rome", "days": null}',
        {"city": "Rome"},
    ),
    ("another case of a name", '{"City": "Rome"}', {"city": "Rome"}),
    ("a comma too many", '{"city": "Rome", "days": 5,}', {"city": "Rome", "days": 5}),
    ("a Markdown fence", '```json\n{"city": "Rome"}\n```', {"city": "Rome"}),
    ("a misspelt optional name", '{"city": "Rome", "dayz": 5}', None),
    ("5.7 for an integer", '{"city": "Rome", "days": 5.7}', None),
    ("a required argument missing", '{"days": 5}', None),
    ("half of the text", '{"city": "Rome", "stops": ["Pi', None),
]
DEFAULTS: dict[str, Any] = {"days": 3, "stops": []}


def probe(module: str) -> dict[str, str]:
    """Run every case through the peer of *module*, in this interpreter."""
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    peer = importlib.import_module(f"comparison_peers.{module}")
    found = {title: cell(peer, text, wanted) for title, text, wanted in CASES}
    found["half of the text, and nothing is required"] = cell(
        peer, '{"city": "Oslo", "stops": ["Pi', None, everywhere=True
    )
    return found | {"the tool raises": cell(peer, '{"city": "nowhere"}', None)}


def cell(
    peer: Any, text: str, wanted: dict[str, Any] | None, *, everywhere: bool = False
) -> str:
    """Return what became of one call; *everywhere*: the tool whose city has a default
    too.
    """
    received: list[dict[str, Any]] = []

    def record(city: str, days: int, stops: list[str]) -> str:
        if city == "nowhere":
            raise ValueError("there is no such city")
        received.append({"city": city, "days": days, "stops": stops})
        return "sunny"

    # The mutable default is what peers see in the signature; nothing changes it.
    def forecast(city: str, days: int = 3, stops: list[str] = []) -> str:  # noqa: B006
        """Forecast the weather of a city."""
        return record(city, days, stops)

    def forecast_anywhere(
        city: str = "Rome",
        days: int = 3,
        stops: list[str] = [],  # noqa: B006
    ) -> str:
        """Forecast the weather of a city."""
        return record(city, days, stops)

    forecast_anywhere.__name__ = "forecast"
    try:
        reply = peer.answer(forecast_anywhere if everywhere else forecast, text)
    except Exception:
        return "ends" if not received else "ran, then ends"
    if reply is None:
        return "not seen"
    if not received:
        return "refused" if reply.strip() else "lost"
    if wanted is not None and received == [DEFAULTS | wanted]:
        return "right"
    changed = {
        name: value
        for name, value in received[0].items()
        if value != DEFAULTS.get(name)
    }
    return f"wrong: {json.dumps(changed)}"


def environment_of(package: str, directory: Path) -> Path:
    """Return the interpreter of the environment for *package*, made where it is
    missing.
    """
    python = directory / package / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", directory / package], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", package], check=True)
    return python


def listing_tokens(path: Path, environments: Path) -> None:
    """Print, for 1, 100 and all skills at *path*, the tokens of each peer's text about
    them, made by its own code.
    """
    from skill_roots import skill_roots
    from token_budget_peers import PEERS as LISTINGS

    from skillruntime import SkillRuntime, discover
    from skillruntime.adapters.tool_formats import SkillTools
    from skillruntime.tokens import count

    with TemporaryDirectory() as folder:
        catalog = discover(
            *skill_roots([path], Path(folder)), trusted=True, use_index=False
        )
        entries = [
            (skill.name, skill.description, skill.path)
            for skill in catalog.values()
            if skill.model_invocable
        ]
        sizes = (1, 100, len(entries))
        rows: dict[str, list[str]] = {}
        for label, budget in (
            ("skillruntime", 4_000),
            ("skillruntime, without a budget", None),
        ):
            for size in sizes:
                names = {name for name, _, _ in entries[:size]}
                view = catalog.select(
                    where=lambda skill, names=names: skill.name in names
                )
                tools = SkillTools(
                    SkillRuntime(view), style="generic", catalog_tokens=budget
                )
                rows.setdefault(label, []).append(tools.system_prompt)
        code = (
            "import json, sys, token_budget_peers as peers\n"
            "made = peers.PEERS[sys.argv[1]](json.load(sys.stdin))\n"
        )
        code += "print(json.dumps([made.standing + made.listing, made.version]))"
        for name in LISTINGS:
            if not (python := environments / name / "bin" / "python").exists():
                continue  # the reference library is not in an environment of its own
            for size in sizes:
                ran = subprocess.run(
                    [python, "-W", "ignore", "-c", code, name],
                    env={"PYTHONPATH": str(HERE), "PATH": ""},
                    input=json.dumps(entries[:size]),
                    capture_output=True,
                    text=True,
                    timeout=600,
                    check=False,
                )
                if ran.returncode:
                    sys.exit(f"{name}: {ran.stderr[-2000:]}")
                text, version = json.loads(ran.stdout.splitlines()[-1])
                rows.setdefault(f"{name} {version}", []).append(text)
    print(
        f"| | {' | '.join(f'{size:,} skills' for size in sizes)} |\n|---|---|---|---|"
    )
    for label, texts in rows.items():
        print(
            f"| {label} | {' | '.join(f'{count(text).tokens:,}' for text in texts)} |"
        )  # of gpt-4o by default


def main() -> None:
    """Print the table as Markdown, with the versions that ran."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--environments",
        type=Path,
        help="the directory for the peers' virtual environments",
    )
    parser.add_argument(
        "--skills", type=Path, help="count what a list of these skills costs instead"
    )
    parser.add_argument("--probe", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(probe(options.probe)))
        return
    if options.skills:
        listing_tokens(options.skills, options.environments.resolve())
        return
    columns, versions = {}, []
    for name, (module, package) in PEERS.items():
        python = (
            environment_of(package, options.environments.resolve())
            if package
            else Path(sys.executable)
        )
        probed = [python, Path(__file__).resolve(), "--probe", module]
        with TemporaryDirectory() as directory:  # some peers write files where they run
            ran = subprocess.run(
                probed,
                cwd=directory,
                capture_output=True,
                text=True,
                timeout=600,
                check=False,
            )
        if ran.returncode:
            sys.exit(f"{name}: {ran.stderr[-2000:]}")
        columns[name] = json.loads(ran.stdout.splitlines()[-1])
        if package:
            version = (
                f"from importlib.metadata import version; print(version({package!r}))"
            )
            said = subprocess.run(
                [python, "-c", version], capture_output=True, text=True, check=True
            ).stdout.strip()
            versions.append(f"{package} {said}")
    print(f"| the model sends | {' | '.join(columns)} |\n|---|{'---|' * len(columns)}")
    for title in next(iter(columns.values())):
        print(
            f"| {title} | {' | '.join(column[title] for column in columns.values())} |"
        )
    print("\n" + ", ".join(versions))


if __name__ == "__main__":
    main()
