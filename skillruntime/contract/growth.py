"""Whether judging a value by a recursive schema costs more with every level of the value: a question of automata.

A schema reads a value from the root down, as a nondeterministic automaton reads a word: its states are the subschemas
that judge a part of the value, its letters the steps into that part. Each run that spells the path of a part judges
that part once. So the number of evaluations grows exponentially with depth exactly if some state has two different
runs back to itself over the same word (Weber and Seidl, "On the degree of ambiguity of finite automata", 1991,
criterion EDA). Siblings under different names spell different words, and never multiply.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from skillruntime.contract.references import Child, Location, References, children

__all__ = ["Growth"]

_MAX_PAIRS = 50_000

Node = TypeVar("Node", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Growth:
    """The automaton of one schema: for each state, the steps it takes and in how many ways."""

    steps: Mapping[Location, tuple[tuple[Child, int], ...]]

    @classmethod
    def of(cls, references: References) -> Growth:
        """Return the automaton of a schema that does not refer to itself without end in the same value."""
        steps: dict[Location, tuple[tuple[Child, int], ...]] = {}
        pending: list[Location] = [()]
        while pending:
            state = pending.pop()
            if state in steps:
                continue
            found: list[tuple[Child, int]] = []
            for location, ways in _in_place_ways(references, state).items():
                for child in children(references.schema_at(location), location):
                    if child.kind not in ("same", "none"):
                        found.append((child, ways))
                        pending.append(child.location)
            steps[state] = tuple(found)
        return cls(steps)

    def is_exponential(self) -> bool:
        """Whether some state has two runs back to itself over one word; yes where there are too many to look at."""
        pairs = 0
        for component in _components(self.steps, lambda state: [child.location for child, _ in self.steps[state]]):
            inside = {
                state: [(child, ways) for child, ways in self.steps[state] if child.location in component]
                for state in component
            }
            if not any(inside.values()):
                continue
            for found in inside.values():
                if any(ways > 1 for _, ways in found):
                    return True
            # The product automaton has a state for each pair, so its size is the bound.
            pairs += len(component) ** 2
            if pairs > _MAX_PAIRS:
                return True
            if _has_two_runs(inside):
                return True
        return False


def _in_place_ways(references: References, start: Location) -> Counter[Location]:
    """Return the subschemas that judge the same value as the one at *start*, and in how many ways each is reached."""
    order: list[Location] = []
    below: dict[Location, list[Location]] = {}
    pending: list[tuple[Location, bool]] = [(start, False)]
    while pending:  # depth first; a location is done when all below it are
        location, is_done = pending.pop()
        if is_done:
            order.append(location)
        elif location not in below:
            schema = references.schema_at(location)
            same = [child.location for child in children(schema, location) if child.kind == "same"]
            below[location] = [*references.targets(location), *same]
            pending += [(location, True), *((each, False) for each in below[location])]
    ways = Counter({start: 1})
    for location in reversed(order):
        for each in below[location]:
            ways[each] += ways[location]
    return ways


def _has_two_runs(inside: Mapping[Location, list[tuple[Child, int]]]) -> bool:
    """Whether two runs that begin in one state, over the same word, part and end in that state again."""

    def after(pair: tuple[Location, Location]) -> Iterable[tuple[Location, Location]]:
        for one, _ in inside[pair[0]]:
            for other, _ in inside[pair[1]]:
                if _overlap(one, other):
                    yield one.location, other.location

    for found in inside.values():  # two steps of one state to one state
        for index, (one, _) in enumerate(found):
            if any(one.location == other.location and _overlap(one, other) for other, _ in found[index + 1 :]):
                return True
    starts = [(state, state) for state in inside]
    for component in _components(starts, after):
        is_same = [one == other for one, other in component]
        if any(is_same) and not all(is_same):
            return True
    return False


def _overlap(one: Child, other: Child) -> bool:
    """Whether one member or item may be reached by both steps."""
    match one.kind, other.kind:
        case "name", "name":
            return bool(one.key == other.key)
        case "name", "rest":
            return one.key not in other.key
        case "rest", "name":
            return other.key not in one.key
        case "index", "index":
            return bool(one.key == other.key)
        case "index", "items":
            return bool(one.key >= other.key)
        case "items", "index":
            return bool(other.key >= one.key)
        case "items", "items":
            return True
    # Whether two patterns match one name, or a pattern a name, is not asked: they are taken to.
    members = ("name", "pattern", "rest")
    return one.kind in members and other.kind in members


def _components(starts: Iterable[Node], after: Callable[[Node], Iterable[Node]]) -> list[set[Node]]:
    """Return the strongly connected components of a graph: Tarjan's algorithm, without recursion."""
    index: dict[Node, int] = {}
    low: dict[Node, int] = {}
    place: dict[Node, int] = {}
    stack: list[Node] = []
    closed: set[Node] = set()
    found: list[set[Node]] = []
    for start in starts:
        work: list[tuple[Node, Iterator[Node]]] = [(start, iter(after(start)))] if start not in index else []
        while work:
            node, rest = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                place[node] = len(stack)
                stack.append(node)
            following = next(rest, None)
            if following is None:
                work.pop()
                if work:
                    parent = work[-1][0]
                    low[parent] = min(low[parent], low[node])
                if low[node] == index[node]:
                    members = stack[place[node] :]
                    del stack[place[node] :]
                    closed.update(members)
                    found.append(set(members))
            elif following not in index:
                work.append((following, iter(after(following))))
            elif following not in closed:
                low[node] = min(low[node], index[following])
    return found
