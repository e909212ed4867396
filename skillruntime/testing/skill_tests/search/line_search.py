"""Look for calls that execute lines of a Python script, or go from one line to another,
that no call so far did. A fault shows only in a call that executes it.

Each call changes one that reached something new.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skillruntime.testing.skill_tests.inputs.calls import sampling_schema
from skillruntime.testing.skill_tests.inputs.case import Case
from skillruntime.testing.skill_tests.runs import Make, Run
from skillruntime.testing.skill_tests.search.changed_calls import (
    Known,
    kinds_of_files,
    with_a_change,
    with_another_file,
    with_both,
    with_literals,
    with_pairs_of_members,
    with_paths,
)
from skillruntime.testing.skill_tests.search.reached_lines import Step

if TYPE_CHECKING:
    from skillruntime.testing.skill_tests.calling import Caller

__all__ = ["search_files", "search_lines"]

_MOST_BASES = 12
"""The most runs that others are built on."""

_AT_FIRST = 3
_AT_ONCE = 3
_FRUITLESS = 6
"""So many calls of one source in a row that reach nothing new end it."""

_ALL_FRUITLESS = 40
"""So many calls in a row that reach nothing new end the search."""


@dataclass(slots=True)
class _Source:
    """A source of calls."""

    cases: Iterator[Case]
    fruitless: int = 0
    """How many of its last calls reached nothing new."""


@dataclass(slots=True)
class _Search:
    """What the calls have reached so far, and the sources of further calls."""

    caller: Caller
    known: Known
    make: Make
    made: set[str] = field(default_factory=set)
    reached: set[Step] = field(default_factory=set)
    bases: list[Run] = field(default_factory=list)
    sources: deque[_Source] = field(default_factory=deque)
    fruitless: int = 0

    def build_on(self, base: Run) -> None:
        """Add the sources of calls that change *base*, before those of others."""
        is_known = any(base is other for other in self.bases)
        if is_known or len(self.bases) == _MOST_BASES:
            return
        others = [*reversed(self.bases)]
        self.bases.append(base)
        for cases in (
            with_pairs_of_members(self.known, base),
            with_both(base, others),
            with_a_change(self.known, base),
            with_literals(self.known, base),
            with_paths(self.known, base),
            with_another_file(self.known, base),
        ):
            self.sources.appendleft(_Source(cases))

    def next_case(self, source: _Source) -> Case | None:
        """Return the next valid call of *source* that was not made."""
        for case in source.cases:
            key = _key(self.caller.with_lessons(case))
            if key in self.made:
                continue
            self.made.add(key)
            if self.caller.subject.contract.input.is_valid(case.arguments):
                return case
        return None


async def search_files(caller: Caller, runs: Sequence[Run], make: Make) -> None:
    """Make the smallest call with a file of each kind again with each other file of
    this kind; *runs* are the ones so far.

    Other data matter even where they execute nothing new: a number that cuts a list
    shows only in a long one.
    """
    generated = _generated(runs)
    search = _search_from(caller, generated, make)
    sources = deque(
        _Source(with_another_file(search.known, run))
        for run in _smallest_of_each_kind(generated)
    )
    while sources and not caller.subject.is_over:
        made = await _make_next(sources, search)
        if made is None:
            return
        sources += [source for source, _ in made]


async def search_lines(caller: Caller, runs: Sequence[Run], make: Make) -> None:
    """Make further calls while they reach something new; *runs* are the ones so far.
    The sources of calls take turns.
    """
    generated = _generated(runs)
    search = _search_from(caller, generated, make)
    if not search.reached:
        return  # not a Python script, or it was not traced
    for run in reversed(_widest(generated)):
        search.build_on(run)
    while search.sources and search.fruitless < _ALL_FRUITLESS:
        if caller.subject.is_over or not await _take_turns(search):
            return


async def _take_turns(search: _Search) -> bool:
    """Make the next call of a few sources; return whether more calls are allowed."""
    made = await _make_next(search.sources, search)
    if made is None:
        return False
    for source, run in made:
        source.fruitless += 1
        search.fruitless += 1
        if run.steps - search.reached:
            search.reached |= run.steps
            source.fruitless = 0
            search.fruitless = 0
            search.build_on(run)
        if source.fruitless < _FRUITLESS:
            search.sources.append(source)
    return True


def _search_from(caller: Caller, generated: Sequence[Run], make: Make) -> _Search:
    """Return a search that knows what *generated* runs reached."""
    subject = caller.subject
    known = Known(
        sampling_schema(subject.contract, tuple(sorted(subject.fixtures.paths))),
        subject.literals,
        subject.members_document,
        caller.variants,
    )
    search = _Search(caller, known, make)
    for run in generated:
        search.made.add(_key(run.case))
        search.reached |= run.steps
    return search


def _generated(runs: Sequence[Run]) -> list[Run]:
    """Return the runs of generated calls, in the order of their arguments: the author's
    own cases play no part, and neither does the order in which calls end, so that
    recording a second time tries the same calls.
    """
    generated = [run for run in runs if run.case.kind != "own"]
    return sorted(generated, key=lambda run: _key(run.case))


def _smallest_of_each_kind(runs: Sequence[Run]) -> list[Run]:
    """Return, for each kind of file that a call named and that worked, the run with the
    fewest arguments.
    """
    good = [run for run in runs if run.has_ended_well]
    seen: set[str] = set()
    found = []
    for run in sorted(good, key=lambda run: len(run.case.arguments)):
        kinds = {*kinds_of_files(run)}
        if kinds - seen:
            seen |= kinds
            found.append(run)
    return found


def _widest(runs: Sequence[Run]) -> list[Run]:
    """Return the runs to build on at first: those that together reach the most, first
    of those that worked, then of all; and the one that worked with the most arguments.
    """
    good = [run for run in runs if run.has_ended_well]
    found: list[Run] = []
    reached: set[Step] = set()
    for group in (good, runs):
        for _ in range(min(_AT_FIRST, len(group))):
            best = max(group, key=lambda run: _width(run, reached))
            if found and not best.steps - reached:
                break
            found.append(best)
            reached |= best.steps
    found += sorted(good, key=lambda run: len(run.case.arguments))[-1:]
    return found


def _width(run: Run, reached: set[Step]) -> tuple[int, int]:
    return len(run.steps - reached), len(run.case.arguments)


async def _make_next(
    pending: deque[_Source], search: _Search
) -> list[tuple[_Source, Run]] | None:
    """Take the first few sources from *pending*, and make the next call of each at the
    same time. Return the sources that had a call, with its run, or None if no more
    calls are allowed.
    """
    cases: list[Case] = []
    sources: list[_Source] = []
    for _ in range(min(_AT_ONCE, len(pending))):
        source = pending.popleft()
        case = search.next_case(source)
        if case is not None:
            cases.append(case)
            sources.append(source)
    runs = await search.make(cases)
    if runs is None:
        return None
    return [*zip(sources, runs, strict=True)]


def _key(case: Case) -> str:
    return json.dumps(case.arguments, sort_keys=True)
