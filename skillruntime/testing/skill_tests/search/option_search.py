"""Look for calls in which an option changes the answer. Only such a call, once it is
recorded, shows that a later version of the script ignores the option.

An option often matters only beside another one, or for a text that the skill or its
files know, such as the name of a column.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from skillruntime.testing.skill_tests.calling import Caller
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.inputs.made_files import (
    is_file_name,
    made_file,
    names_in_file,
    texts_of,
)
from skillruntime.testing.skill_tests.runs import Make, Run
from skillruntime.testing.skill_tests.subject import Subject

__all__ = ["runs_at_bounds", "search_options", "telling_runs"]

_MOST_TRIES = 10
"""The most calls for one option."""

_MOST_BASES = 3
_MOST_TEXTS = 3
_MOST_NAMED = 2
_EXISTING = "existing"
_MADE = "made"
_QUOTED = re.compile(
    r"(?<!\w)'([^'\n]{1,60})'(?!\w)|\"([^\"\n]{1,60})\"|`([^`\n]{1,60})`"
)
_LISTED = re.compile(r":[ \t]++([^\s:'\"`][^\n:'\"`]{0,999}+)(?=\n|\Z)")
_BETWEEN_ITEMS = re.compile(r"[,|] ?(?:and |or )?")
_LONGEST_ITEM = 60


async def search_options(caller: Caller, runs: Sequence[Run], make: Make) -> None:
    """Make further calls for each option that has changed no answer of *runs*, to which
    *make* adds the run of each. The options take turns, so that a lack of calls leaves
    none of them out.
    """
    pending = {}
    for name in caller.subject.options:
        pending[name] = islice(_further_cases(caller, name, runs), _MOST_TRIES)
    while pending:
        for name, cases in [*pending.items()]:
            telling = telling_runs(runs).get(name)
            is_settled = telling is not None and _is_steady(telling)
            case = next(cases, None)
            if case is None or is_settled:
                del pending[name]
            elif await make([case]) is None:
                return


def telling_runs(runs: Sequence[Run]) -> dict[str, Run]:
    """Return, for each option that changes an answer, a run with it: its answer differs
    from that of the same call without it. A successful run is preferred to one that the
    script refused, and one in an ordinary workspace to one in a made repository.
    """
    known = _by_arguments(runs)
    found: dict[str, Run] = {}
    for run in sorted(
        runs, key=lambda run: (not _is_steady(run), not run.has_ended_well)
    ):
        for name in run.case.arguments:
            other = known.get(_key(_without(run.case.arguments, name)))
            if other is None or other.answer == run.answer:
                continue
            if run.has_ended_well or other.has_ended_well:
                found.setdefault(name, run)
    return found


def _is_steady(run: Run) -> bool:
    """Return whether *run* ended well where a recorded case is repeated."""
    return run.has_ended_well and not run.in_repository


def runs_at_bounds(runs: Sequence[Run]) -> Iterator[Run]:
    """Yield the runs on both sides of a bound: with the next number and otherwise the
    same arguments, the answer is another one.
    """
    known = _by_arguments(runs)
    for run in runs:
        name = run.case.parameter or ""
        value = run.case.arguments.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            continue
        other = known.get(_key({**run.case.arguments, name: value + 1}))
        if other is not None and other.answer != run.answer:
            yield run
            yield other


def _further_cases(caller: Caller, name: str, runs: Sequence[Run]) -> Iterator[Case]:
    """Yield calls with and without the option *name* that were not made; the run of
    each is among *runs* when the next one is asked for.
    """
    contract = caller.subject.contract
    made = {_key(run.case.arguments) for run in runs}
    for case in _possible_cases(caller, name, runs):
        key = _key(case.arguments)
        if key not in made and contract.input.is_valid(case.arguments):
            made.add(key)
            yield case


def _possible_cases(caller: Caller, name: str, runs: Sequence[Run]) -> Iterator[Case]:
    bases = _bases(name, runs)
    if not bases:
        return
    values = _values(caller.subject, name, runs)
    yield from _cases_with_other_files(caller, name, bases, values)
    with_effect = []
    for base in _chosen(bases):
        yield _case(base.arguments, name)
        changes = [{**base.arguments, name: value} for value in values[:2]]
        for changed in changes:
            yield _case(changed, name)
        if any(_has_effect(changed, name, runs) for changed in changes):
            with_effect.append(base)
        yield from _named_cases(caller.subject, name, runs)
    for base in with_effect:
        for value in values[2:]:
            yield _case({**base.arguments, name: value}, name)


def _cases_with_other_files(
    caller: Caller, name: str, bases: Sequence[_Base], values: Sequence[Any]
) -> Iterator[Case]:
    for arguments, has_outputs in _with_other_files(caller, bases):
        # Only a boolean or an enum can say whether a file is overwritten.
        if has_outputs and not _is_choice(caller.subject.parameters[name]):
            continue
        yield _case(arguments, name, has_outputs=has_outputs)
        for value in values[: 2 if has_outputs else 1]:
            yield _case({**arguments, name: value}, name, has_outputs=has_outputs)


def _is_choice(part: Mapping[str, Any]) -> bool:
    """Return whether the schema *part* takes a boolean, or members of an enum."""
    parts = [part, *part.get("anyOf", ()), *part.get("oneOf", ())]
    return any("enum" in each or "boolean" in each.get("type", ()) for each in parts)


def _case(arguments: dict[str, Any], name: str, *, has_outputs: bool = False) -> Case:
    return Case(
        arguments, "option", None, name, is_invented=True, has_outputs=has_outputs
    )


def _has_effect(arguments: Mapping[str, Any], name: str, runs: Sequence[Run]) -> bool:
    """Return whether the answer differs from that without the option *name*, or one of
    the two is not known.
    """
    known = _by_arguments(runs)
    run = known.get(_key(arguments))
    other = known.get(_key(_without(arguments, name)))
    return run is None or other is None or run.answer != other.answer


@dataclass(frozen=True, slots=True)
class _Base:
    """The arguments of a successful call without an option, and how many steps of the
    script the call executed.
    """

    arguments: dict[str, Any]
    steps: int

    @property
    def kinds_of_files(self) -> tuple[str, ...]:
        """The suffixes of the files that it names."""
        names = filter(is_file_name, texts_of(self.arguments))
        return tuple(name[name.rindex(".") :] for name in names)


def _bases(name: str, runs: Sequence[Run]) -> list[_Base]:
    """Return the successful generated calls without the option, the shortest first."""
    found: list[_Base] = []
    seen: set[str] = set()
    for run in sorted(runs, key=lambda run: len(run.case.arguments)):
        arguments = _without(run.case.arguments, name)
        is_usable = run.has_ended_well and run.case.kind != "own"
        if is_usable and _key(arguments) not in seen:
            seen.add(_key(arguments))
            found.append(_Base(arguments, len(run.steps)))
    return found


def _chosen(bases: Sequence[_Base]) -> list[_Base]:
    """Return the *bases* to add an option to: for each kind of file, the shortest call
    that executes the most; the longest call, because an option may need others; the one
    that executes the most; and the shortest.
    """
    fewest = len(bases[0].arguments)
    best_of_kind: dict[tuple[str, ...], _Base] = {}
    for base in bases:
        if len(base.arguments) > fewest:
            break
        best = best_of_kind.setdefault(base.kinds_of_files, base)
        if base.steps > best.steps:
            best_of_kind[base.kinds_of_files] = base
    widest = max(bases, key=lambda base: base.steps)
    found: list[_Base] = []
    for base in (*best_of_kind.values(), bases[-1], widest, bases[0]):
        if base not in found:
            found.append(base)
    return found


def _with_other_files(
    caller: Caller, bases: Sequence[_Base]
) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield one of *bases* with an output file that exists, and one with a made file in
    place of the skill's own: it has letters beyond ASCII, for example.
    """
    fixtures = caller.subject.fixtures.paths
    existing: dict[str, Any] = {}
    made: dict[str, Any] = {}
    for base in bases:
        for parameter, value in base.arguments.items():
            if not isinstance(value, str) or not is_file_name(value):
                continue
            suffix = value[value.rindex(".") :]
            if parameter in caller.without_files and not existing:
                existing = {**base.arguments, parameter: f"{_EXISTING}{suffix}"}
            elif value in fixtures and not made and made_file(value) is not None:
                made = {**base.arguments, parameter: f"{_MADE}{suffix}"}
    if existing:
        yield existing, True
    if made:
        yield made, False


def _values(subject: Subject, name: str, runs: Sequence[Run]) -> list[Any]:
    """Return values for the option: those that the script took, texts that the script,
    its source or its files offer, and those that the script refused.
    """
    part = subject.parameters[name]
    taken: list[Any] = []
    refused: list[Any] = []
    for run in runs:
        value = run.case.arguments.get(name)
        if value in (None, "", [], {}, part.get("default")) or value in taken:
            continue
        if run.has_ended_well:
            taken.append(value)
        elif value not in refused:
            refused.append(value)
    in_source = filter(_is_text, subject.literals.beside.get(name, []))
    texts = [*_offered_texts(name, runs), *in_source, *_names_in_files(runs)]
    offered = _of_type(part, texts[:_MOST_TEXTS])
    return [*taken[:1], *offered, *taken[1:], *refused]


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _names_in_files(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the names of columns and members in the files of the first good call."""
    for run in runs:
        if run.has_ended_well:
            for path, data in run.files.items():
                yield from names_in_file(path, data)
            return


def _named_cases(subject: Subject, name: str, runs: Sequence[Run]) -> Iterator[Case]:
    """Yield the calls that the script refused, the longest first, with the values that
    it names when it refuses the option.
    """
    part = subject.parameters[name]
    refused = [run for run in runs if _is_refused_for(run, name)]
    refused.sort(key=lambda run: len(run.case.arguments), reverse=True)
    for run in refused[:_MOST_BASES]:
        texts = _offered_texts(name, [run])
        for value in _of_type(part, islice(texts, _MOST_NAMED)):
            yield _case({**run.case.arguments, name: value}, name)


def _is_refused_for(run: Run, name: str) -> bool:
    """Return whether the script refused *run*, which was made for the option *name*."""
    is_of_option = run.case.parameter == name and name in run.case.arguments
    return is_of_option and not run.has_ended_well


def _of_type(part: Mapping[str, Any], texts: Iterable[str]) -> list[Any]:
    """Return *texts* as values of a property with the schema *part*, if it takes texts
    or lists.
    """
    if part.get("type") == "string" and "enum" not in part:
        return [*texts]
    if part.get("type") == "array":
        return [[text] for text in texts]
    return []


def _offered_texts(name: str, runs: Sequence[Run]) -> Iterator[str]:
    """Yield the texts that the script quotes, or lists behind a colon, when it refuses
    a value of the option.
    """
    for run in runs:
        if not _is_refused_for(run, name):
            continue
        sent = json.dumps(run.case.arguments[name])
        for text in _named_texts(run.advice):
            if text not in sent:
                yield text


def _named_texts(message: str) -> Iterator[str]:
    """Yield the texts that *message* quotes, then those that it lists behind a colon.

    >>> [*_named_texts("No file 'x'. Its files: src/one.py, new name.txt.")]
    ['x', 'src/one.py', 'new name.txt']
    >>> [*_named_texts("Not found: the file that was named")]
    []
    """
    for match in _QUOTED.finditer(message):
        yield match[match.lastindex or 0]
    for match in _LISTED.finditer(message):
        items = [item.strip("[]. ") for item in _BETWEEN_ITEMS.split(match[1])]
        # One item with several words is a sentence.
        if len(items) > 1 or " " not in items[0]:
            for item in items:
                if 0 < len(item) <= _LONGEST_ITEM:
                    yield item


def _by_arguments(runs: Sequence[Run]) -> dict[str, Run]:
    return {_key(run.case.arguments): run for run in runs}


def _without(arguments: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if key != name}


def _key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True)
