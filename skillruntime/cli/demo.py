"""``skillruntime demo``: malformed calls repaired, migrated and refused in a real
agent, offline.

Everything shown is run: the bundled skills, a LangChain agent loop, the skill's own
script in its own process. Only the model is scripted, so that every run shows the same
model errors.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from skillruntime.cli.inputs.places import bundled_skills
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    console,
    json_option,
    notes,
    print_result,
)
from skillruntime.errors import SkillNotFoundError, ToolNotAvailableError

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import SkillCatalog

__all__ = ["command", "play"]

SKILL = "daily-news-digest"
QUESTION = "What is new about AI regulation, quantum computing and harbour seals?"
# Module -> extra that installs it. They are looked for, not imported: an ImportError
# would hide the second one.
_NEEDED = {"langchain": "agents", "feedparser": "skills"}


class Scene(NamedTuple):
    """One call that the scripted model makes: why it is shown, and the expected
    outcome.
    """

    title: str
    tool: str
    arguments: dict[str, Any]
    expected: str


SCENES = (
    Scene(
        "It loads the skill: its instructions are read only now",
        "load_skill",
        {"name": SKILL},
        "loaded",
    ),
    Scene(
        'It sends the text "5" where the number 5 belongs, and a choice in capitals',
        SKILL,
        {
            "topics": ["AI regulation"],
            "max_articles_per_topic": "5",
            "output_format": "BRIEF",
        },
        "repaired",
    ),
    Scene(
        "It sends the shape of version 1, where topics was one string",
        SKILL,
        {"topics": "quantum computing"},
        "migrated",
    ),
    Scene(
        "It leaves out the one parameter that has no default",
        SKILL,
        {"time_range": "today"},
        "refused",
    ),
    Scene(
        "It follows the suggested action and calls again",
        SKILL,
        {"topics": ["harbour seals"]},
        "succeeded",
    ),
)


@click.command("demo")
@json_option
def command(as_json: bool) -> None:
    """Watch malformed calls being repaired, migrated and refused: real skills and a
    real agent loop, offline.
    """
    _require_libraries()
    directory = bundled_skills()
    if directory is None:
        raise SkillNotFoundError(
            "The bundled skills are not installed with this package"
        )
    from skillruntime.catalog import discover
    from skillruntime.tokens import count

    catalog = discover(directory, trusted=True)
    tokens = count(catalog.to_prompt()).tokens
    out = console()
    if not as_json:
        out.rule("[bold]skillruntime demo[/]")
        out.print(
            "Real skills, a real LangChain agent loop, no key and no network. Only "
            "the model is a script.\n"
        )
        out.print(
            f"[bold]The catalog[/]: {len(catalog)} skills, {tokens} tokens in the "
            f"prompt: {', '.join(catalog)}"
        )
        out.print(f"[bold]The question[/]: {QUESTION}")
    steps = []
    # Drawn as each scene ends, so that a person sees the agent at work instead of a
    # pause of two seconds.
    for number, step in enumerate(play(catalog), start=1):
        steps.append(step)
        if not as_json:
            _draw_step(out, number, step)
    # The demo is a test of the installation too: an unexpected outcome is exit code 1.
    outcomes = [step["outcome"] for step in steps]
    as_expected = outcomes == [scene.expected for scene in SCENES]
    document = {"catalog_tokens": tokens, "steps": steps, "as_expected": as_expected}
    print_result(document, lambda out: _draw_end(out, as_expected), as_json=as_json)
    if not as_expected:
        sys.exit(EXIT_FAILED)


def play(catalog: SkillCatalog) -> Iterator[dict[str, Any]]:
    """Run a LangChain agent through the scenes, and yield each as a JSON object when it
    has ended.
    """
    from langchain.agents import create_agent
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    from skillruntime.adapters.langchain import SkillToolkit
    from skillruntime.runtime import SkillRuntime
    from skillruntime.testing import ScriptedChatModel, call_message

    replies = [
        call_message((scene.tool, scene.arguments), turn=turn)
        for turn, scene in enumerate(SCENES, start=1)
    ]
    with tempfile.TemporaryDirectory(prefix="skillruntime-demo-") as workspace:
        _write_feed(Path(workspace))
        runtime = SkillRuntime(catalog)
        toolkit = SkillToolkit(runtime, session=runtime.session(workspace=workspace))
        # The last reply calls no tool: that ends the loop of create_agent.
        model = ScriptedChatModel(replies=[*replies, AIMessage("Here is your digest.")])
        agent = create_agent(
            model, toolkit.get_tools(), system_prompt=toolkit.system_prompt()
        )
        question: Any = {"messages": [HumanMessage(QUESTION)]}
        scenes = iter(SCENES)
        # "updates" yields after each node, so a scene is shown when its tool has
        # answered.
        for update in agent.stream(question, stream_mode="updates"):
            for message in update.get("tools", {}).get("messages", []):
                if isinstance(message, ToolMessage):
                    scene, envelope = next(scenes), message.artifact.to_dict()
                    yield {
                        **scene._asdict(),
                        "outcome": _outcome(scene, envelope),
                        "envelope": envelope,
                    }


def _outcome(scene: Scene, envelope: dict[str, Any]) -> str:
    metadata = envelope.get("metadata", {})
    if envelope["status"] == "failed":
        # Without "data" the skill never ran: the contract refused the call.
        if "data" in envelope:
            return "failed"
        return "refused"
    if scene.tool == "load_skill":
        return "loaded"
    if "migrated_from" in metadata:
        return "migrated"
    if metadata.get("repairs"):
        return "repaired"
    return "succeeded"


def _require_libraries() -> None:
    # All extras in one command, so that a reader need not install one to learn about
    # the next.
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        extras = ",".join(_NEEDED[name] for name in missing)
        wrong = f"Not installed, and needed by the demo: {', '.join(missing)}"
        raise ToolNotAvailableError(
            wrong, suggested_action=f"pip install 'skillruntime[{extras}]'"
        )


def _write_feed(workspace: Path) -> None:
    """Write the demo's feed, dated today, and the list of feeds that names it into the
    workspace.
    """
    # The skill leaves out articles older than a day, so the feed must be from now.
    now = datetime.now(UTC)
    names = ("two", "three", "four", "five")
    dates = {
        f"{name}_hours_ago": format_datetime(now - timedelta(hours=2 + n))
        for n, name in enumerate(names)
    }
    feed = (Path(__file__).parent / "demo_assets" / "feed.xml").read_text("utf-8")
    (workspace / "sample.xml").write_text(feed.format(**dates), "utf-8")
    (workspace / "news_feeds.json").write_text(
        json.dumps({"feeds": [{"name": "Sample Wire", "url": "sample.xml"}]})
    )


_COLOURS = {
    "loaded": "cyan",
    "repaired": "yellow",
    "migrated": "magenta",
    "refused": "red",
    "succeeded": "green",
}


def _draw_step(out: Console, number: int, step: dict[str, Any]) -> None:
    from rich.markup import escape

    envelope, colour = step["envelope"], _COLOURS.get(step["outcome"], "red")
    out.print(f"\n  [bold]{number}. {escape(step['title'])}.[/]")
    out.print(
        f"     [dim]model calls[/]  {escape(step['tool'])} "
        f"{escape(json.dumps(step['arguments']))}"
    )
    out.print(f"     [bold {colour}]{step['outcome'].upper()}[/]")
    for line in notes(envelope.get("metadata", {})):
        out.print(f"       [{colour}]{escape(line)}[/]")
    data = envelope.get("data")
    for topic in data.get("topics_covered", []) if isinstance(data, dict) else []:
        for article in topic["articles"]:
            out.print(
                f"       • {escape(article['title'])} ({escape(article['source'])})"
            )
    for error in envelope.get("errors", []):
        out.print(f"       [red]{error['code']}[/] {escape(error['message'])}")
        out.print(f"       [green]→ {escape(error.get('suggested_action', ''))}[/]")


def _draw_end(out: Console, as_expected: bool) -> None:
    if as_expected:
        out.print(
            "\n"
            f"[bold green]The run completed:[/] {len(SCENES)} calls, {len(SCENES)} "
            "envelopes, no exception."
        )
    else:
        out.print(
            "\n"
            "[bold red]The run did not go as expected[/]: see the step that is not as "
            "its title says."
        )
    out.print("\n[dim]Next:[/]")
    out.print("  skillruntime show pdf-processing --bundled")
    out.print(
        '  skillruntime call --bundled daily-news-digest \'{"topics": ["AI"], '
        '"max_articles_per_topic": "3"}\''
    )
