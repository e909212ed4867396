"""``skillruntime test``: test skills from their contracts, or from requests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from skillruntime.cli.inputs.granted_variables import environment_option
from skillruntime.cli.terminal.output import (
    EXIT_FAILED,
    console,
    json_option,
    print_result,
)
from skillruntime.cli.terminal.sarif import sarif_option, to_sarif, write_sarif
from skillruntime.cli.terminal.text import shown

if TYPE_CHECKING:
    from rich.console import Console

    from skillruntime.catalog import SkillCatalog
    from skillruntime.testing import (
        Request,
        SkillResult,
        SkillTestReport,
        TriggerReport,
    )

__all__ = ["command"]

_COLOURS = {"passed": "green", "failed": "red", "not testable": "yellow"}
_MOST_LOST = 20
_MOST_PAIRS = 15


@click.command("test")
@click.argument(
    "directories",
    nargs=-1,
    required=True,
    metavar="DIRECTORY...",
    type=click.Path(exists=True, file_okay=False),
)
@click.option(
    "--trust", is_flag=True, help="Run the scripts without a sandbox, from a copy."
)
@click.option("--network", is_flag=True, help="Grant the scripts the network.")
@environment_option("Grant the scripts this variable; repeatable.")
@click.option(
    "--seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(min=1),
    help="The maximum number of seconds for each skill.",
)
@click.option(
    "--calls",
    default=200,
    show_default=True,
    type=click.IntRange(1),
    help="The maximum number of calls for each callable.",
)
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    help="Test only this skill, or this tool of one (pdf/merge); repeatable.",
)
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the results as JUnit XML to FILE too.",
)
@click.option(
    "--record",
    is_flag=True,
    help="Write calls and what they gave to tests/cases.yaml of their skill.",
)
@click.option(
    "--triggers",
    is_flag=True,
    help="Test the descriptions instead: rank the requests that come with the skills.",
)
@click.option(
    "--model",
    metavar="NAME",
    help="With --triggers: ask this chat model of LangChain, such as openai:gpt-5.",
)
@click.option("--yes", is_flag=True, help="With --model: do not ask before it is used.")
@sarif_option
@json_option
def command(
    directories: tuple[str, ...],
    *,
    trust: bool,
    network: bool,
    environment: tuple[str, ...],
    seconds: float,
    calls: int,
    only: tuple[str, ...],
    junit: Path | None,
    record: bool,
    triggers: bool,
    model: str | None,
    yes: bool,
    as_sarif: bool,
    sarif_file: Path | None,
    as_json: bool,
) -> None:
    """Test the skills in each DIRECTORY: calls made from their contracts are run in a
    sandbox, and what comes back is checked.

    Exits with 1 if a skill failed, or if there is none. One that cannot be tested on
    this machine does not fail; what would make it testable is printed. With --triggers,
    nothing is run, and only a model's wrong answers fail.
    """
    if model is not None and not triggers:
        raise click.UsageError("--model is for --triggers")
    # click has no exclusive options.
    if as_sarif and as_json:
        raise click.UsageError("use only one of --json and --sarif")
    if junit is not None and not junit.parent.is_dir():
        raise click.UsageError(f"--junit {junit}: there is no such directory")
    if triggers:
        ignored = {
            "--record": record,
            "--only": only,
            "--junit": junit,
            "--sarif": as_sarif,
            "--sarif-file": sarif_file,
        }
        for option, value in ignored.items():
            if value:
                raise click.UsageError(f"{option} is not for --triggers")
        _test_triggers(directories, model, yes=yes, as_json=as_json)
        return
    from skillruntime.testing import SkillTests

    tests = SkillTests(
        trust=trust,
        network=network,
        environment=environment,
        seconds=seconds,
        calls=calls,
        record=record,
        only=only,
    )
    report = _tested(directories, tests)
    if junit is not None:
        _write_junit(report, junit)
    write_sarif(report.diagnostics(), sarif_file)
    if as_sarif:
        print_result(to_sarif(report.diagnostics()), _draw(report), as_json=True)
    else:
        print_result(report.to_dict(), _draw(report), as_json=as_json)
    if not report.ok:
        sys.exit(EXIT_FAILED)


def _test_triggers(
    directories: tuple[str, ...], model: str | None, *, yes: bool, as_json: bool
) -> None:
    from skillruntime.catalog import discover
    from skillruntime.testing import ask_model, rank_requests, read_requests

    catalog = discover(*directories)
    requests = read_requests(catalog)
    if not requests:
        click.echo(
            "No requests found; write them in tests/triggers.yaml of a skill, each "
            "with `request:` and, if it is for another skill, `skill:`",
            err=True,
        )
    if model is None or not requests:
        report = rank_requests(catalog, requests)
    else:
        _confirm(catalog, requests, yes=yes)
        report = ask_model(_open_model(model), catalog, requests)
    print_result(report.to_dict(), _draw_triggers(report, model), as_json=as_json)
    if model is not None and not report.ok:
        sys.exit(EXIT_FAILED)


def _confirm(catalog: SkillCatalog, requests: Sequence[Request], *, yes: bool) -> None:
    """Print the costs of asking a model, ask for confirmation, and exit unless it is
    given.
    """
    from skillruntime.tokens import count

    each = count(catalog.to_prompt()).tokens
    tokens = sum(each + count(request.text).tokens for request in requests)
    click.echo(f"{len(requests):,} requests, {tokens:,} tokens of input", err=True)
    if not yes and not click.confirm("Send them to the model?", err=True):
        sys.exit(EXIT_FAILED)


def _open_model(name: str) -> Any:
    """Return the chat model *name*, as LangChain finds it."""
    try:
        from langchain.chat_models import init_chat_model
    except ModuleNotFoundError as error:
        from skillruntime.extras import missing_extra

        raise click.UsageError(str(missing_extra(error))) from None
    try:
        return init_chat_model(name)
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"--model {name}: {error}") from None


def _draw_triggers(
    report: TriggerReport, model: str | None
) -> Callable[[Console], None]:
    def draw(out: Console) -> None:
        for lost in report.lost[:_MOST_LOST]:
            text = " ".join(lost.request.text.split())[:100]
            winner = shown(lost.winner or "none")
            right = shown(lost.request.skill or "none")
            out.print(f"[red]{winner}[/] instead of {right}: {shown(text)}")
        if len(report.lost) > _MOST_LOST:
            left = len(report.lost) - _MOST_LOST
            out.print(f"and {left:,} more requests (--json shows all)", style="dim")
        if report.pairs:
            _draw_pairs(out, report)
        for name, words in list(report.missing_words.items())[:_MOST_PAIRS]:
            listed = ", ".join(words)
            out.print(f"{shown(name)}: no description has {shown(listed)}", style="dim")
        judge = "the ranking" if model is None else shown(model)
        out.print(
            f"{report.right:,} of {report.requests:,} requests are won by their skill "
            f"({judge})"
        )
        for name in sorted({str(each.skill) for each in report.unknown}):
            click.echo(f"There is no skill {name!r} here for a model", err=True)

    return draw


def _draw_pairs(out: Console, report: TriggerReport) -> None:
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("confused skills", "lost", "close", "words of both descriptions"):
        table.add_column(title)
    for pair in report.pairs[:_MOST_PAIRS]:
        table.add_row(
            shown(" / ".join(pair.skills)),
            str(pair.lost),
            str(pair.close),
            shown(", ".join(pair.words)),
        )
    out.print(table)
    if len(report.pairs) > _MOST_PAIRS:
        left = len(report.pairs) - _MOST_PAIRS
        out.print(f"and {left:,} more pairs (--json shows all)", style="dim")


def _tested(directories: tuple[str, ...], tests: Any) -> SkillTestReport:
    """Return the results, and show on a terminal the skill being tested."""
    from skillruntime.testing import run_skill_tests

    out = console(stderr=True)
    if not out.is_terminal:
        return run_skill_tests(*directories, tests=tests)
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=out, transient=True) as progress:
        task = progress.add_task("testing", total=None)

        def report_progress(name: str, done: int, number: int) -> None:
            progress.update(task, description=shown(name), completed=done, total=number)

        return run_skill_tests(*directories, tests=tests, progress=report_progress)


def _write_junit(report: SkillTestReport, path: Path) -> None:
    from skillruntime.testing.skill_tests.junit import to_junit

    try:
        path.write_text(to_junit(report), encoding="utf-8")
    except OSError as error:
        raise click.UsageError(
            f"{path} cannot be written: {error.strerror or error}"
        ) from None


def _draw(report: SkillTestReport) -> Callable[[Console], None]:
    def draw(out: Console) -> None:
        surroundings = report.surroundings
        out.print(
            f"Python {surroundings['python']} on {surroundings['platform']}, sandbox: "
            f"{surroundings['sandbox']}",
            style="dim",
        )
        for skill in report.skills:
            _draw_skill(out, skill)
        failed = report.count("failed")
        colour = "red" if failed else "green"
        out.print(
            f"[{colour}]{_skills(len(report.skills))}: {report.count('passed'):,} "
            f"passed, {failed:,} failed, {report.count('not testable'):,} not "
            "testable[/]"
        )
        if not report.skills:
            click.echo(
                "No skills found in these directories; `skillruntime new NAME` writes "
                "a skill",
                err=True,
            )

    return draw


def _draw_skill(out: Console, skill: SkillResult) -> None:
    colour = _COLOURS[skill.status]
    note = "" if skill.callables else "  instructions only"
    out.print(
        f"[{colour}]{skill.status:<13}[/] [bold]{shown(skill.name)}[/]"
        f"  {skill.seconds:.1f} s{note}"
    )
    if skill.recorded:
        out.print(
            f"  recorded {skill.recorded:,} cases in tests/cases.yaml; read them "
            "before you commit them"
        )
    for each in skill.callables:
        line = (
            f"{each.made:,} calls run, {each.succeeded:,} with a result; "
            f"{each.refused:,} others refused as they should be"
        )
        if each.left_out:
            line += f", {each.left_out:,} left out for lack of time"
        out.print(f"  {shown(each.name)}: {line}", style="dim")
        for failure in each.failures:
            out.print(f"  [red]{failure.check}[/] {shown(failure.message)}")
            if failure.command:
                out.print(f"    {shown(failure.command)}")
        for reason, remedy in _hindrances(each.hindrances):
            out.print(f"  [yellow]not testable[/] {shown(reason)}")
            out.print(f"    {shown(remedy)}")


def _hindrances(found: Iterable[Any]) -> list[tuple[str, str]]:
    return [(each.reason, each.remedy) for each in found]


def _skills(number: int) -> str:
    return "1 skill" if number == 1 else f"{number:,} skills"
