"""``skillruntime demo``: malformed calls repaired, migrated and refused in a real agent, offline.

Everything shown is run: the bundled skills, a LangChain agent loop, the skill's own script in its own process. Only
the model is scripted, so that every run shows the same model errors.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.output import EXIT_FAILED, console, fail, json_option, notes, print_result, short
from skillruntime.cli.roots import bundled_skills
from skillruntime.errors import SkillNotFoundError, ToolNotAvailableError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import SkillCatalog

__all__ = ["command", "play"]

SKILL = "daily-news-digest"
# Module -> extra that installs it. They are looked for, not imported: an ImportError would hide the second one.
_NEEDED = {"langchain": "agents", "feedparser": "skills"}


@dataclass(frozen=True, slots=True)
class Scene:
    """One call that the scripted model makes: why it is shown, and the expected outcome."""

    title: str
    tool: str
    arguments: dict[str, Any]
    outcome: str


SCENES = (
    Scene("It loads the skill: its instructions are read only now", "load_skill", {"name": SKILL}, "loaded"),
    Scene(
        'It sends the text "5" where the number 5 belongs, and a choice in capitals',
        SKILL,
        {"topics": ["AI regulation"], "max_articles_per_topic": "5", "output_format": "BRIEF"},
        "repaired",
    ),
    Scene(
        "It sends the shape of version 1, where topics was one string",
        SKILL,
        {"topics": "quantum computing"},
        "migrated",
    ),
    Scene("It leaves out the one parameter that has no default", SKILL, {"time_range": "today"}, "refused"),
    Scene("It follows the suggested action and calls again", SKILL, {"topics": ["harbour seals"]}, "succeeded"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A scene and its outcome."""

    scene: Scene
    outcome: str
    envelope: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as a JSON object."""
        return {
            "title": self.scene.title,
            "tool": self.scene.tool,
            "arguments": self.scene.arguments,
            "outcome": self.outcome,
            "expected": self.scene.outcome,
            "envelope": self.envelope,
        }


@click.command("demo")
@json_option
def command(as_json: bool) -> None:
    """Watch malformed calls being repaired, migrated and refused: real skills and a real agent loop, offline."""
    _require_libraries(as_json=as_json)
    directory = bundled_skills()
    if directory is None:
        fail(SkillNotFoundError("The bundled skills are not installed with this package"), as_json=as_json)
    from skillruntime.catalog import discover

    started = time.perf_counter()
    catalog = discover(directory, trusted=True)
    milliseconds = (time.perf_counter() - started) * 1000
    tokens = _tokens(catalog)
    out = None if as_json else console()
    if out is not None:
        _draw_opening(out, catalog, tokens, milliseconds)
    # Drawn as each scene ends, so that a person sees the agent at work and not a pause of two seconds.
    steps: list[Step] = []
    for number, step in enumerate(play(catalog), start=1):
        steps.append(step)
        if out is not None:
            _draw_step(out, number, step)
    # The demo is a test of the installation too: an unexpected outcome is exit code 1.
    is_as_expected = [step.outcome for step in steps] == [scene.outcome for scene in SCENES]
    if out is not None:
        _draw_end(out, steps, is_as_expected=is_as_expected)
    else:
        document = {"catalog": tokens, "steps": [step.to_dict() for step in steps], "as_expected": is_as_expected}
        print_result(document, lambda _: None, as_json=True)
    sys.exit(0 if is_as_expected else EXIT_FAILED)


def play(catalog: SkillCatalog) -> Iterator[Step]:
    """Run a LangChain agent through the scenes, and yield each when it has ended."""
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from skillruntime.adapters.langchain import SkillToolkit
    from skillruntime.runtime import SkillRuntime
    from skillruntime.testing import ScriptedChatModel, call_message

    replies = [call_message((scene.tool, scene.arguments), turn=turn) for turn, scene in enumerate(SCENES, start=1)]
    with tempfile.TemporaryDirectory(prefix="skillruntime-demo-") as workspace:
        _write_feed(Path(workspace))
        runtime = SkillRuntime(catalog)
        toolkit = SkillToolkit(runtime, session=runtime.session(workspace=workspace))
        # The last reply calls no tool: that ends the loop of create_agent.
        model = ScriptedChatModel(replies=[*replies, AIMessage("Here is your digest.")])
        agent = create_agent(model, toolkit.get_tools(), system_prompt=toolkit.system_prompt())
        question: Any = {
            "messages": [HumanMessage("What is new about AI regulation, quantum computing and harbour seals?")]
        }
        scenes = iter(SCENES)
        # "updates" yields after each node, so a scene is shown when its tool has answered.
        for update in agent.stream(question, stream_mode="updates"):
            for message in update.get("tools", {}).get("messages", []):
                if isinstance(message, ToolMessage):
                    yield _step(next(scenes), message)


def _step(scene: Scene, message: Any) -> Step:
    envelope = message.artifact.to_dict()
    metadata = envelope.get("metadata", {})
    # Without "data" the skill never ran: the contract refused the call.
    if envelope["status"] == "failed":
        outcome = "refused" if "data" not in envelope else "failed"
    elif scene.tool == "load_skill":
        outcome = "loaded"
    elif "migrated_from" in metadata:
        outcome = "migrated"
    else:
        outcome = "repaired" if metadata.get("repairs") else "succeeded"
    return Step(scene, outcome, envelope)


def _require_libraries(*, as_json: bool) -> None:
    # All at once, in one command: installing one extra to learn of the next wastes a reader's patience.
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        install = f"pip install 'skillruntime[{','.join(_NEEDED[name] for name in missing)}]'"
        fail(
            ToolNotAvailableError(
                f"The demo needs {' and '.join(missing)}, which {'is' if len(missing) == 1 else 'are'} not installed",
                suggested_action=f"Run: {install}",
            ),
            as_json=as_json,
        )


def _write_feed(workspace: Path) -> None:
    """Write the demo's feed, dated today, and the list of feeds that names it into the workspace."""
    # The skill leaves out articles older than a day, so the feed must be from now.
    now = datetime.now(UTC)
    names = ("two", "three", "four", "five")
    dates = {f"{name}_hours_ago": format_datetime(now - timedelta(hours=2 + n)) for n, name in enumerate(names)}
    feed = (Path(__file__).parent / "demo_assets" / "feed.xml").read_text("utf-8")
    (workspace / "sample.xml").write_text(feed.format(**dates), "utf-8")
    (workspace / "news_feeds.json").write_text(json.dumps({"feeds": [{"name": "Sample Wire", "url": "sample.xml"}]}))


def _tokens(catalog: SkillCatalog) -> dict[str, Any]:
    """Return the tokens of the catalog, of each entry, and of all instructions together."""
    from skillruntime.tokens import count

    # What a model reads is counted, not the sum of its parts: tokens merge across their borders.
    prompt = catalog.to_prompt()
    total = count(prompt)
    entries = {
        name: next((count(line).tokens for line in prompt.splitlines() if f" {name}:" in line), 0) for name in catalog
    }
    bodies = sum(count(catalog.activate(name).body).tokens for name in catalog)
    return {"entries": entries, "total": total.to_dict(), "all_instructions": bodies}


def _draw_opening(out: Console, catalog: SkillCatalog, tokens: dict[str, Any], milliseconds: float) -> None:
    from rich.markup import escape
    from rich.table import Table

    total = tokens["total"]
    out.print()
    out.rule("[bold]skillruntime demo[/]")
    out.print("Real skills, a real LangChain agent loop, no key and no network. Only the model is a script:")
    out.print("it makes the errors that real models make, on purpose.\n")
    out.print(f"[bold]1. The catalog[/]  [dim]{len(catalog)} skills discovered in {milliseconds:.1f} ms[/]\n")
    table = Table(box=None, padding=(0, 2, 0, 2), header_style="dim")
    table.add_column("skill", no_wrap=True)
    table.add_column("tokens", justify="right")
    table.add_column("description, as the model reads it at the start")
    for name, skill in catalog.items():
        table.add_row(f"[bold]{escape(name)}[/]", str(tokens["entries"][name]), escape(skill.description))
    out.print(table)
    exact = "counted" if total["exact"] else "estimated"
    out.print(
        f"\n  [green]{total['tokens']} tokens[/] in all ({exact} with {total['method']}); "
        f"the instructions of all {len(catalog)} would be {tokens['all_instructions']:,}.\n"
    )
    out.print("[bold]2. The agent[/]  [dim]“What is new about AI regulation, quantum computing and harbour seals?”[/]")


_COLOURS = {"loaded": "cyan", "repaired": "yellow", "migrated": "magenta", "refused": "red", "succeeded": "green"}


def _draw_step(out: Console, number: int, step: Step) -> None:
    from rich.markup import escape

    scene, envelope = step.scene, step.envelope
    metadata = envelope.get("metadata", {})
    colour = _COLOURS.get(step.outcome, "red")
    out.print(f"\n  [bold]{number}. {escape(scene.title)}.[/]")
    out.print(f"     [dim]model calls[/]  {escape(scene.tool)} {escape(json.dumps(scene.arguments))}")
    took = f"  [dim]{metadata['duration_ms']} ms[/]" if "duration_ms" in metadata else ""
    out.print(f"     [bold {colour}]{step.outcome.upper()}[/]{took}")
    for line in notes(metadata):
        out.print(f"       [{colour}]{escape(line)}[/]")
    for line in _result_lines(scene, envelope):
        out.print(f"       {escape(line)}")
    for error in envelope.get("errors", []):
        out.print(f"       [red]{error['code']}[/] {escape(error['message'])}")
        if "suggested_action" in error:
            out.print(f"       [green]→ {escape(error['suggested_action'])}[/]")


def _result_lines(scene: Scene, envelope: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of a result that are worth showing."""
    data = envelope.get("data")
    if scene.tool == "load_skill" and isinstance(data, str):
        from skillruntime.tokens import count

        yield f"{count(data).tokens:,} tokens of instructions, file names and tools, loaded on demand"
    elif isinstance(data, dict):
        for topic in data.get("topics_covered", []):
            for article in topic.get("articles", []):
                yield f"• {article['title']} ({article['source']})"


def _draw_end(out: Console, steps: list[Step], *, is_as_expected: bool) -> None:
    out.print()
    if is_as_expected:
        out.print(f"[bold green]The run completed:[/] {len(steps)} calls, {len(steps)} envelopes, no exception.")
        out.print("The repairable calls were run. The other one was refused before it ran, with the change to make.\n")
    else:
        outcomes = ", ".join(f"{step.scene.outcome} → {step.outcome}" for step in steps)
        out.print(
            f"[bold red]The run did not go as expected:[/] {outcomes} {short(steps[-1].envelope) if steps else ''}\n"
        )
    out.print("[dim]Next:[/]")
    out.print("  skillruntime show pdf-processing --bundled")
    out.print('  skillruntime call --bundled daily-news-digest \'{"topics": ["AI"], "max_articles_per_topic": "3"}\'')
    out.print("  skillruntime list --skills DIRECTORY\n")
