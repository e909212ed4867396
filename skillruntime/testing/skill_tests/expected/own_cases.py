"""Make the calls of ``tests/cases.yaml``, compare what they give with what each case
expects, and record new cases from calls that were made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import anyio

from skillruntime.catalog.frontmatter.yaml_reader import load_yaml
from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.checks import first_failure, has_crashed
from skillruntime.testing.skill_tests.expected.answers import (
    ANY,
    first_difference,
    is_like_text,
    steady_answer,
    steady_text,
    without_places,
)
from skillruntime.testing.skill_tests.expected.case_files import OwnCase, cases_text
from skillruntime.testing.skill_tests.findings import Findings
from skillruntime.testing.skill_tests.hindrances import (
    hindrance_of,
    hindrance_of_machine,
)
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import MOST_FIXTURES, is_fixture
from skillruntime.testing.skill_tests.runs import Run
from skillruntime.testing.skill_tests.search.option_search import (
    runs_at_bounds,
    telling_runs,
)
from skillruntime.testing.skill_tests.search.reached_lines import Step

__all__ = ["make_own_case", "recorded_cases"]

_MOST_RECORDED = 40
"""The most cases that succeed, besides the examples that the skill shows."""

_MOST_REFUSALS = 16
"""The most cases that a script refuses in its own words."""

_LONGEST_RECORDED = 20_000
"""The most characters of a recorded result: a person reads it."""

_SECONDS_BETWEEN = 2.0
"""So much later a call is repeated: ZIP archives note times in steps of two seconds."""

_MOST_SENT = 200_000


async def make_own_case(own: OwnCase, findings: Findings) -> Run | None:
    """Make the call of *own*, and record what differs from what it expects. Return the
    run if it gave a result.
    """
    caller = findings.caller
    result = findings.result
    case = Case(own.arguments, "own", own.version)
    if own.exact:
        files = caller.fixtures_of(case)
    else:
        files = {**caller.subject.fixtures.named, **caller.files_of(case)}
    run = await caller.call_traced(case, files)
    result.made += 1
    if own.error is None:
        hindrance = hindrance_of_machine(run)
        if hindrance is not None:
            if hindrance not in result.hindrances:
                result.hindrances.append(hindrance)
            return None
    if run.has_ended_well:
        result.succeeded += 1
        for check, message in first_failure(run):
            findings.add(check, message, case)
            return run
    elif own.error is not None:
        result.refused += 1
    message = next(_problems(own, run), "")
    if message:
        findings.add("case", message, case)
    if not run.has_ended_well:
        return None
    return run


def _problems(own: OwnCase, run: Run) -> Iterator[str]:
    """Yield what differs from what the case expects."""
    if own.error is not None:
        yield from _problems_of_error(own, run)
    elif not run.has_ended_well:
        messages = "; ".join(error.message for error in run.response.errors)
        yield f"expected a result, got: {messages}"
        return
    if own.has_data:
        difference = first_difference(own.data, run.response.data, is_whole=own.exact)
        if difference:
            yield f"the result is not what the case expects: {difference}"
    if own.stderr is not None and not is_like_text(own.stderr, run.stderr):
        difference = first_difference(
            own.stderr, run.stderr, is_whole=True, path="stderr"
        )
        yield f"the script writes something else: {difference}"
    yield from _problems_of_files(own, run)


def _problems_of_error(own: OwnCase, run: Run) -> Iterator[str]:
    codes = sorted(code.value for code in run.codes)
    if own.error not in codes:
        yield f"expected the error {own.error}, got {codes or 'a result'}"
        return
    if own.message is None:
        return
    messages = [error.message for error in run.response.errors]
    if any(is_like_text(own.message, message) for message in messages):
        return
    difference = first_difference(
        own.message, messages[0], is_whole=True, path="message"
    )
    yield f"the error is not what the case expects: {difference}"


def _problems_of_files(own: OwnCase, run: Run) -> Iterator[str]:
    expected = set()
    for path, digest in own.files.items():
        changed = [name for name in run.changed if is_like_text(path, name)]
        expected.update(changed)
        digests = {run.changed[name] for name in changed}
        if digest == ANY:
            is_there = any(name.endswith(path) for name in run.after)
            if not changed and not is_there:
                yield f"the file {path!r} was not written"
        elif not changed:
            yield f"the file {path!r} was not changed"
        elif digest not in digests:
            yield f"the file {path!r} has another content"
    if not own.exact:
        return
    for path in sorted(run.changed.keys() - expected):
        yield f"the file {path!r} was changed, which the case does not expect"


async def recorded_cases(
    runs: Sequence[Run], caller: Caller, call: str | None
) -> tuple[list[OwnCase], dict[str, bytes]]:
    """Return cases from the most telling of *runs*, and the files that they name. Each
    call is repeated as the case will be; what both answers have in common is expected.
    """
    known = len(caller.subject.fixtures.paths)
    chosen = []
    files: dict[str, bytes] = {}
    for run in _most_telling(runs):
        made = {name: run.files[name] for name in run.made}
        # A later test must find the files again.
        is_found = all(map(is_fixture, made))
        if is_found and known + len({*files, *made}) <= MOST_FIXTURES:
            chosen.append(run)
            files |= made
    repeating = caller.to_repeat_with(files)
    await anyio.sleep(_SECONDS_BETWEEN)
    cases = []
    for run in chosen:
        # Another case may name a file that this one expects to be absent.
        if run.made - repeating.fixtures_of(run.case).keys():
            continue
        again = await repeating.call_with(run.case, repeating.fixtures_of(run.case))
        if again.codes != run.codes or hindrance_of_machine(again) is not None:
            continue
        own = _steady_case(run, again, call)
        if own is None or any(_problems(own, again)):
            continue
        # YAML 1.1 reads some JSON in another way: 1e+17 is a text.
        if load_yaml(cases_text([own])) == [own.to_dict()]:
            cases.append(own)
    return cases, files


def _steady_case(run: Run, again: Run, call: str | None) -> OwnCase | None:
    """Return the case of which *run* and *again* are two runs; None if nothing of their
    answers is steady.
    """
    sent = _sent_text(run)
    own = OwnCase(
        run.case.arguments,
        call,
        run.case.version,
        stderr=_steady_stderr(run, again, sent),
        files=_steady_files(run, again, sent),
        exact=True,
    )
    if run.has_ended_well:
        data = steady_answer(_placeless(run), _placeless(again), sent)
        is_long = len(json.dumps(data, default=str)) > _LONGEST_RECORDED
        if is_long or (data == ANY and not own.files):
            return None
        return replace(own, data=data, has_data=True)
    error, other = run.response.errors[0], again.response.errors[0]
    message = steady_text(
        without_places(error.message, run.places),
        without_places(other.message, again.places),
        sent,
    )
    return replace(own, error=error.code.value, message=message)


def _steady_stderr(run: Run, again: Run, sent: str) -> str | None:
    """Return what both runs write to stderr; None if they write nothing there."""
    if not run.stderr or not again.stderr:
        return None
    return steady_text(
        without_places(run.stderr, run.places),
        without_places(again.stderr, again.places),
        sent,
    )


def _steady_files(run: Run, again: Run, sent: str) -> dict[str, str]:
    """Return the digests of the files that both runs changed."""
    found = {}
    others = sorted(again.changed)
    for number, path in enumerate(sorted(run.changed)):
        other = others[number] if number < len(others) else ""
        digest = run.changed[path]
        if again.changed.get(other) != digest:
            digest = ANY
        found[steady_text(path, other, sent)] = digest
    return found


def _placeless(run: Run) -> Any:
    return without_places(run.response.data, run.places)


def _sent_text(run: Run) -> str:
    """Return the arguments and the texts of the files of *run* as one text."""
    parts = [json.dumps(run.case.arguments, ensure_ascii=False)]
    parts += [data[:_MOST_SENT].decode(errors="replace") for data in run.files.values()]
    return "\n".join(parts)


def _most_telling(runs: Sequence[Run]) -> list[Run]:
    """Return the runs to record: those that the skill shows as examples, and of the
    others those that show the most, with a few that the script refused; the smallest
    calls first, for the reader.
    """
    own = [run for run in runs if run.case.kind == "own"]
    usable = [run for run in runs if run.has_ended_well or _is_refusal(run)]
    usable = [run for run in usable if run.case.kind != "own" and not run.in_repository]
    examples = []
    others = []
    refusals = []
    for run in _with_something_new(usable, own):
        if not run.has_ended_well:
            refusals.append(run)
        elif run.case.kind == "example":
            examples.append(run)
        else:
            others.append(run)
    left = max(0, _MOST_RECORDED - len(own))
    chosen = [*examples, *others[:left], *refusals[: min(left, _MOST_REFUSALS)]]
    return sorted(chosen, key=lambda run: len(run.case.arguments))


def _is_refusal(run: Run) -> bool:
    """Return whether the script refused *run* in its own words."""
    if run.has_ended_well or not run.has_started:
        return False
    if has_crashed(run) or hindrance_of(run) is not None:
        return False
    return not any(first_failure(run))


def _with_something_new(runs: Sequence[Run], own: Sequence[Run]) -> list[Run]:
    """Return the runs that show something that the cases *own* do not: first one for
    each option that changes an answer, then those that execute something new, the most
    first, then those on both sides of a bound, then those with a new answer, then those
    with a new parameter.
    """
    found: list[Run] = []
    answers = {_exact_answer(run) for run in own}
    parameters: set[str | None] = {None}
    reached: set[Step] = set()
    for run in own:
        parameters.update(run.case.arguments)
        reached |= run.steps

    def add(run: Run) -> None:
        found.append(run)
        answers.add(_exact_answer(run))
        parameters.add(run.case.parameter)
        reached.update(run.steps)

    for option, run in telling_runs(runs).items():
        if option not in parameters and run not in found:
            add(run)
            parameters.add(option)
    left = [*runs]
    while left:
        widest = max(left, key=lambda run: _width(run, reached))
        if not widest.steps - reached:
            break
        left.remove(widest)
        add(widest)
    for run in runs_at_bounds(runs):
        if run not in found:
            add(run)
    for run in runs:
        if _exact_answer(run) not in answers:
            add(run)
    for run in runs:
        if run.case.parameter not in parameters:
            add(run)
    return found


def _width(run: Run, reached: set[Step]) -> tuple[int, int]:
    """Return how much *run* executes that was not *reached*; of equal ones, the
    smallest call is the greatest.
    """
    return len(run.steps - reached), -len(run.case.arguments)


def _exact_answer(run: Run) -> str:
    """Return everything that *run* gave as one text."""
    messages = [error.message for error in run.response.errors]
    answer = [_placeless(run), messages, {**run.changed}]
    return json.dumps(answer, default=str)
