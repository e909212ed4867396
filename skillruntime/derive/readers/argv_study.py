"""All command lines on which a script that takes its words by their number is traced, and what they agree on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from skillruntime.derive.command import TEXT, Argument, Command, ValueType
from skillruntime.derive.interpreter.state import Exhausted
from skillruntime.derive.interpreter.words import Outcome, Role, Word
from skillruntime.derive.readers.argv_places import (
    BY_HAND,
    Undecided,
    flag_of,
    is_read,
    is_same,
    is_undisturbed,
    kind_of,
    most_alike,
    name_of,
    place_of,
    rest_of,
    undashed,
    with_distinct_names,
    without,
)

__all__ = ["Study"]

WORDS_LIMIT = 12
"""Words of the longest command line that is traced."""

LITERALS_LIMIT = 24
"""Literals that one word is compared with."""

_HELP = ("-h", "--help", "-?", "help", "-help", "-V", "--version")

Fixed = tuple[tuple[int, str], ...]
"""The words of a trace that have a text, by their position."""


@dataclass(slots=True)
class _Calls:
    """The outcomes of traces that differ only in the number of words."""

    outcomes: list[Outcome]
    first: int

    @property
    def accepted(self) -> dict[int, Outcome]:
        return {self.first + index: each for index, each in enumerate(self.outcomes) if not each.refused}

    @property
    def most(self) -> int:
        return self.first + len(self.outcomes) - 1


class Study:
    """All traces of one script, of which *trace* gives the outcome of a command line."""

    def __init__(self, trace: Callable[[list[Word]], Outcome]) -> None:
        self._trace = trace
        self._known: dict[Fixed, _Calls] = {}

    def level(self, fixed: Fixed) -> Command:
        """Return what follows *fixed* words on the command line."""
        calls = self._calls(fixed)
        accepted = calls.accepted
        begin = len(fixed) + 1
        compared = self._compared(calls, fixed)
        by_hand = [each for each in compared if each[1].startswith("-") and each[1] not in _HELP]
        # One flag may be a guard; several are a parser that takes its words one by one.
        if len(by_hand) > 1:
            raise Undecided(BY_HAND)
        variants = {(place, text): self._calls((*fixed, (place, text))) for place, text in compared}
        choices = {key: each for key, each in variants.items() if each.accepted}
        places = {place for place, _ in choices}
        # The script refuses every other word in that position: the literals are choices.
        if choices and all(number < min(places) for number in accepted):
            if len(places) == 1 and next(iter(choices))[1].startswith("-"):
                return self._guarded(choices, fixed, begin)
            return self._chosen(choices, variants, accepted, fixed, begin)
        # Every trace ended in the usage: what makes the script work depends on more than words.
        if not accepted:
            raise Undecided("no number of words is known to be right")
        command = Command("places", arguments=self._places(calls, fixed, begin))
        refused: dict[int, list[str]] = {}
        for (place, text), each in variants.items():
            if not each.accepted:
                refused.setdefault(place, []).append(text)
            elif text.startswith("-") or not self._is_alike(each, calls, place):
                raise Undecided(BY_HAND if text[:1] == "-" else "a word decides what follows")
            else:
                command.arguments = self._with_kind_of(command.arguments, place - begin, each)
        flags = self._flags(calls, fixed)
        command.arguments = [
            without(each, [*flags, *refused.get(begin + index, ())]) for index, each in enumerate(command.arguments)
        ]
        command.arguments += [without(each, [*flags]) for each in flags.values()]
        return command

    def least(self) -> int:
        """Return how many words the script refuses to run without, as far as that is known."""
        if (calls := self._known.get(())) is not None and calls.accepted:
            return min(calls.accepted)
        try:
            return int(self._trace([Word(0)]).refused)
        except (Undecided, Exhausted):
            return 0

    def _calls(self, fixed: Fixed) -> _Calls:
        """Trace with as many words as the script tests for, and two more."""
        if fixed in self._known:
            return self._known[fixed]
        first = max((place for place, _ in fixed), default=0)
        known = dict(fixed)
        outcomes: list[Outcome] = []
        asked = 0
        # Two words beyond the largest number that the script tests for show whether more are read. Where no trace could
        # see them, they need not be tried: most scripts take each word by its number.
        for number in range(first, WORDS_LIMIT + 3):
            outcome = self._trace([Word(place, known.get(place)) for place in range(number + 1)])
            outcomes.append(outcome)
            asked = max(asked, outcome.asked)
            # ``while len(args) < n`` asks for one more each time.
            if asked > WORDS_LIMIT:
                break
            if number >= asked and not outcome.takes_all:
                outcomes += [outcome] * (max(asked, first) + 2 - number)
                number = asked + 2
            if number >= asked + 2:
                self._known[fixed] = _Calls(outcomes, first)
                return self._known[fixed]
        raise Undecided("the script tests for too many words")

    def _compared(self, calls: _Calls, fixed: Fixed) -> list[tuple[int, str]]:
        known = dict(fixed)
        found: dict[tuple[int, str], None] = {}
        for outcome in calls.outcomes:
            for place, literals in outcome.compared.items():
                if isinstance(place, int) and place not in known:
                    found |= {(place, text): None for text in literals if text}
        # Each literal costs a round of traces.
        if len(found) > LITERALS_LIMIT:
            raise Undecided("the script tests for too many words")
        return list(found)

    def _is_alike(self, variant: _Calls, calls: _Calls, place: int) -> bool:
        """Whether a literal in *place* changes nothing of what other words mean."""
        most = min(variant.most, calls.most)
        here = {number: each for number, each in variant.accepted.items() if number <= most}
        there = {number: each for number, each in calls.accepted.items() if place <= number <= most}
        if set(here) != set(there):
            return False
        for number, outcome in here.items():
            roles, others = outcome.roles, there[number].roles
            if set(roles) - {place} != set(others) - {place}:
                return False
            if not all(is_same(role, others.get(each)) for each, role in roles.items() if each != place):
                return False
        return True

    def _with_kind_of(self, arguments: list[Argument], index: int, calls: _Calls) -> list[Argument]:
        """Return *arguments* with text for the one at *index*, where it is converted otherwise in *calls*."""
        if not 0 <= index < len(arguments) or arguments[index].takes != "value":
            return arguments
        kind = kind_of([each.roles.get(calls.first, Role()) for each in calls.accepted.values()])
        # ``n = None if word == "all" else int(word)``: a literal that is not a number leaves text.
        if kind == arguments[index].value:
            return arguments
        return [replace(each, value=TEXT) if each is arguments[index] else each for each in arguments]

    def _guarded(self, choices: dict[tuple[int, str], _Calls], fixed: Fixed, begin: int) -> Command:
        """A flag that must come before its value, after all other words."""
        (place, text), calls = next(iter(choices.items()))
        # ``tool --in FILE`` with a fixed position is read; anything freer is a parser.
        if len(choices) > 1 or fixed or self._flags(calls, ((place, text),)):
            raise Undecided(BY_HAND)
        if self._compared(calls, ((place, text),)):
            raise Undecided(BY_HAND)
        arguments = self._places(calls, ((place, text),), begin)
        if len(arguments) != place + 1 or not all(each.required and each.takes == "value" for each in arguments):
            raise Undecided(BY_HAND)
        name = text.lstrip("-").replace("-", "_")
        value = replace(arguments[place], name=name, flags=(text,))
        return Command("places", arguments=[*arguments[: place - 1], value])

    def _chosen(
        self,
        choices: dict[tuple[int, str], _Calls],
        variants: dict[tuple[int, str], _Calls],
        accepted: dict[int, Outcome],
        fixed: Fixed,
        begin: int,
    ) -> Command:
        """A word that must be one of the script's literals: a choice, or a command where it decides what follows."""
        place = min(each for each, _ in choices)
        texts = [text for each, text in choices if each == place]
        if place != begin and not fixed and len({each for each, _ in choices}) == 1:
            return self._choice_behind(place, texts, choices, accepted, begin)
        if place != begin or any(text.startswith("-") for text in texts) or len(fixed) > 1:
            raise Undecided("a word decides what follows")
        levels = {text: self.level((*fixed, (place, text))) for text in texts}
        name = _choice_name(choices[(place, texts[0])], place)
        first = levels[texts[0]]
        # All words are followed by the same arguments: a choice, not a command.
        if all(_same_command(each, first) for each in levels.values()):
            value = ValueType({"type": "string", "enum": texts})
            choice = Argument(name, value=value, required=not accepted)
            if accepted and (first.chooser or any(each.required for each in first.arguments)):
                raise Undecided("a word decides what follows")
            return replace(first, arguments=[choice, *first.arguments])
        # ``git remote add``: two levels are the most that stays readable.
        if any(each.chooser for each in levels.values()):
            raise Undecided("a word decides what follows")
        return Command("places", chooser=name, commands=levels, chooser_required=not accepted)

    def _choice_behind(
        self,
        place: int,
        texts: list[str],
        choices: dict[tuple[int, str], _Calls],
        accepted: dict[int, Outcome],
        begin: int,
    ) -> Command:
        """A word behind others that must be one of *texts*, and decides nothing: ``convert.py FILE png|webp``."""
        found: list[list[Argument]] = []
        for text in texts:
            calls, key = choices[(place, text)], ((place, text),)
            if text.startswith("-") or self._compared(calls, key) or self._flags(calls, key):
                raise Undecided("a word decides what follows")
            found.append(self._places(calls, key, begin))
        index = place - begin
        arguments = found[0]
        is_optional = accepted.keys() == {place - 1} and not any(each.required for each in arguments[index + 1 :])
        if any(each != arguments for each in found) or len(arguments) <= index or (accepted and not is_optional):
            raise Undecided("a word decides what follows")
        choice = replace(arguments[index], value=ValueType({"type": "string", "enum": texts}), required=not accepted)
        return Command("places", arguments=[*arguments[:index], choice, *arguments[index + 1 :]])

    def _places(self, calls: _Calls, fixed: Fixed, begin: int) -> list[Argument]:
        """The arguments that are positional, from *begin* on."""
        accepted = calls.accepted
        least, most = min(accepted), most_alike(accepted)
        accepted = {number: each for number, each in accepted.items() if number <= most}
        # ``len(sys.argv) in (2, 4)``: a schema of positions cannot leave out three.
        if sorted(accepted) != list(range(least, most + 1)):
            raise Undecided("not every number of words is right")
        top = accepted[most]
        if most == calls.most:
            rest = rest_of(top, most)
            read = [place for place in top.roles if isinstance(place, int) and place < rest and is_read(top, place)]
            last = max(read, default=begin - 1)
        else:
            rest, last = most + 1, most
        known = dict(fixed)
        arguments: list[Argument] = []
        for place in range(begin, last + 1):
            if place not in known and not all(
                is_read(each, place) for number, each in accepted.items() if number >= place
            ):
                raise Undecided("not every place of sys.argv is read")
            arguments.append(place_of(accepted, place, least, top))
        if rest <= most:
            arguments += self._rest(accepted, rest, least, most)
        for place in range(begin, most + 1):
            self._check(calls, fixed, place, accepted)
        return with_distinct_names(arguments)

    def _rest(self, accepted: dict[int, Outcome], rest: int, least: int, most: int) -> list[Argument]:
        top = accepted[most]
        uses = top.roles[most].uses
        for number, outcome in accepted.items():
            if any(
                place not in outcome.roles or outcome.roles[place].uses != uses for place in range(rest, number + 1)
            ):
                raise Undecided("what a word means depends on how many there are")
        role = top.roles[rest]
        name = name_of(role, "words")
        # ``" ".join(sys.argv[1:])`` is one text for the caller.
        if role.joined and len(uses) == 1:
            return [Argument("text" if name == "words" else name, required=least >= rest)]
        value = kind_of([each.roles[rest] for number, each in accepted.items() if number >= rest])
        value = undashed(value, rest, accepted)
        needed = max(0, least - rest + 1)
        return [Argument(name, (), "values", value, required=needed > 0, least=needed)]

    def _check(self, calls: _Calls, fixed: Fixed, place: int, accepted: dict[int, Outcome]) -> None:
        """Raise if the script treats a word that starts with a dash differently from the others."""
        # Only a position that is tested for dashes can take a dashed word differently.
        if not any(place in each.dashes for each in accepted.values()):
            return
        known = dict(fixed)
        for number in accepted:
            # The same outcome for more words: they are not looked at.
            if number < place or accepted[number] is accepted.get(number - 1):
                continue
            words = [Word(each, known.get(each), dashed=each == place) for each in range(number + 1)]
            outcome = self._trace(words)
            role = outcome.roles.get(place)
            if not outcome.refused and role is not None and (role.uses or outcome.compared.get(place)):
                raise Undecided(BY_HAND)

    def _flags(self, calls: _Calls, fixed: Fixed) -> dict[str, Argument]:
        """The flags that are looked for among the words, as arguments; their presence changes no other word."""
        found: dict[str, bool] = {}
        for outcome in calls.outcomes:
            found |= {flag: takes or found.get(flag, False) for flag, takes in outcome.flags.items()}
        texts = dict(fixed).values()
        found = {flag: takes for flag, takes in found.items() if flag and flag not in texts}
        shown = {flag: takes for flag, takes in found.items() if not self._is_refused(calls, fixed, flag)}
        if len(shown) > LITERALS_LIMIT // 3:
            raise Undecided("the script tests for too many words")
        if not shown:
            return {}
        roles: dict[str, list[Role]] = {flag: [] for flag, takes in shown.items()}
        takes = dict(shown)
        accepted = calls.accepted
        for number, outcome in accepted.items():
            # The same outcome for more words: they are not looked at.
            if outcome is accepted.get(number - 1):
                continue
            for group in [[flag] for flag in shown] + ([list(shown)] if len(shown) > 1 else []):
                with_flags = self._trace(self._words(fixed, number, group, takes))
                for flag in group:
                    if not takes[flag] and with_flags.flags.get(flag):
                        takes[flag] = True
                        with_flags = self._trace(self._words(fixed, number, group, takes))
                # ``"--dark" in sys.argv`` next to ``sys.argv[2]``: the flag may be mistaken for the second word.
                if not is_undisturbed(with_flags, outcome):
                    raise Undecided("a flag may be where a word is read by its position")
                for flag in group:
                    if takes[flag]:
                        roles[flag].append(with_flags.roles.get(flag, Role()))
        read = {use for outcome in accepted.values() for role in outcome.roles.values() for use in role.reads}
        if any(not read.isdisjoint(each.reads) for flag in shown if takes[flag] for each in roles[flag]):
            raise Undecided("a flag may be where a word is read by its position")
        if any(len({frozenset(each.reads) for each in roles[flag]}) > 1 for flag in shown if takes[flag]):
            raise Undecided("a flag may be where a word is read by its position")
        return {flag: flag_of(flag, roles[flag] if takes[flag] else None) for flag in shown}

    def _words(self, fixed: Fixed, number: int, flags: list[str], takes: dict[str, bool]) -> list[Word]:
        known = dict(fixed)
        words = [Word(place, known.get(place)) for place in range(number + 1)]
        for flag in flags:
            words.append(Word("", flag, flag=True))
            words += [Word(flag)] if takes[flag] else []
        return words

    def _is_refused(self, calls: _Calls, fixed: Fixed, flag: str) -> bool:
        """Whether a call with *flag* does nothing: it asks for help."""
        # Help flags are not arguments: they do nothing else.
        if flag not in _HELP:
            return False
        return all(self._trace(self._words(fixed, n, [flag], {flag: False})).refused for n in calls.accepted)


def _choice_name(calls: _Calls, place: int) -> str:
    return name_of(next(iter(calls.accepted.values())).roles.get(place, Role()), "command")


def _same_command(one: Command, other: Command) -> bool:
    return (one.arguments, one.chooser, one.commands) == (other.arguments, other.chooser, other.commands)
