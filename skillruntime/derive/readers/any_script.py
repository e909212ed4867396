"""Read scripts without declarations, in any language: literal commands, and positional
words by their names.

The reading is never complete, because it does not follow what a script does with its
words. It closes nothing and requires nothing: the first words get the names that the
code binds them to, the literals that the first word is compared with are listed "among
others", and all words may be given as the list ``args``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from skillruntime.derive.command import Argument, Command, Reading, Unread
from skillruntime.derive.readers.script_text import Token
from skillruntime.derive.readers.usage import ScriptText, Usage, place_names
from skillruntime.derive.text_fields import plain_name
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["Words", "read_any", "to_reading", "words_are_used"]

COMMANDS_LIMIT = 60
PLACES_LIMIT = 9
FLAGS_LIMIT = 20

ARGS = "The words of the command line, one item each, without the script's name."
FOLLOWING = "The words that follow the command, one item each."
REST = "Further words of the command line, one item each, such as flags."
NOT_FOLLOWED = "what the script does with its words is not followed"

_VECTORS: Mapping[str, Mapping[tuple[str, ...], int]] = {
    "python": {("sys", ".", "argv"): 0},
    "node": {
        ("process", ".", "argv"): -1,
        ("Bun", ".", "argv"): -1,
        ("Deno", ".", "args"): 1,
    },
    "other": {("ARGV",): 1, ("$ARGV",): 1},
}
"""The name of the list of words in each language, and the offset from an index to the
number of a word.
"""

_FRAMEWORKS = {"python": "sys.argv", "node": "process.argv", "other": "usage"}
_DECLARES = frozenset({"const", "let", "var", "my", "our"})
_CONVERTS = frozenset(
    [
        "Path",
        "int",
        "float",
        "str",
        "Number",
        "String",
        "parseInt",
        "parseFloat",
        "abspath",
        "expanduser",
        "realpath",
        "resolve",
    ]
)
"""Functions whose result is still the word."""
_COMPARES = frozenset({"==", "===", "in", "case", "when", "("})
_COMMAND = lazy_pattern(r"[A-Za-z][\w:.-]{0,60}")
_FLAG = lazy_pattern(r"(?:-\w, ?)?(--?[A-Za-z][\w-]{0,60})(?:[ =][<\[][^\n]{0,80})?")


@dataclass(slots=True)
class Words:
    """The facts about the words in a script's code: the names that it binds the word at
    each place to, the literals that it compares the first word with, and its flags.
    """

    names: dict[int, list[str]] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    least: int = 0
    """The number of words that a check requires, if the script counts them."""

    def note(self, number: int, name: str = "") -> None:
        """Record that the code uses the word *number*, under *name* if it has one."""
        if 1 <= number <= PLACES_LIMIT:
            names = self.names.setdefault(number, [])
            if name and name not in names:
                names.append(name)


def words_are_used(script: ScriptText) -> bool:
    """Whether the script mentions the words of its command line."""
    reader = _Reader(script.tokens, _VECTORS[script.kind])
    return any(reader.form_at(index) for index in range(len(script.tokens)))


def read_any(
    script: ScriptText, *, reason: str = NOT_FOLLOWED, least: int = 0
) -> Reading:
    """Return the facts about the words of *script*, which is not a shell script;
    *least* is the number of words that it requires.
    """
    words = _Reader(script.tokens, _VECTORS[script.kind]).read()
    words.least = least
    return to_reading(words, script.usage, _FRAMEWORKS[script.kind], reason)


def to_reading(words: Words, usage: Usage, framework: str, reason: str) -> Reading:
    """Return the command that has these words."""
    command = Command("places", unread=[Unread("arguments", reason)])
    commands = [text for text in words.commands if _COMMAND.fullmatch(text)]
    if len(commands) > 1:
        shown = ", ".join(commands[:COMMANDS_LIMIT])
        places = [Argument("command", description=f"One of {shown}, among others")]
        described = FOLLOWING
    else:
        places = _named_places(words, usage)
        described = REST if places else ARGS
    if words.flags and not usage.text:
        described = f"{described} Flags: {' '.join(words.flags[:FLAGS_LIMIT])}"
    least = max(words.least - len(places), 0)
    for number, place in enumerate(places):
        if number < words.least:
            places[number] = Argument(
                place.name, required=True, description=place.description
            )
    rest = Argument(
        "args", takes="values", required=least > 0, least=least, description=described
    )
    command.arguments = [*places, rest]
    return Reading(command, framework, "low")


def _named_places(words: Words, usage: Usage) -> list[Argument]:
    """Return the first places that the code uses, with the names of the usage line if
    it names as many, else with those of the code.
    """
    used = 0
    while used + 1 in words.names:
        used += 1
    stated = place_names(usage)
    if len(stated) != used:
        stated = []
    places: list[Argument] = []
    taken = {"args"}
    for number in range(1, used + 1):
        bound = words.names[number]
        name = stated[number - 1] if stated else ""
        if not name and len(bound) == 1:
            name = plain_name(bound[0].lower())
        if not name or name in taken:
            break
        taken.add(name)
        places.append(Argument(name))
    return places


@dataclass(slots=True)
class _Choice:
    """A ``switch``, ``match`` or ``case`` over the first word; it ends with its braces,
    or with a line that is not indented further.
    """

    depth: int
    indent: int
    has_braces: bool


@dataclass(slots=True)
class _Reader:
    """Reads the tokens once, from the first to the last."""

    tokens: list[Token]
    vectors: Mapping[tuple[str, ...], int]
    words: Words = field(default_factory=Words)
    lists: dict[str, int] = field(default_factory=dict)
    """Names that hold the words from some index on: ``args = sys.argv[1:]``."""
    bound: dict[str, int] = field(default_factory=dict)
    """Names that hold one word, and its number."""
    targets: list[str] = field(default_factory=list)
    """The names that the current statement assigns; an empty name skips a value."""
    is_unpacked: bool = False
    depth: int = 0
    choices: list[_Choice] = field(default_factory=list)

    def read(self) -> Words:
        """Read all tokens and return the facts about the words."""
        index = 0
        is_start = True
        while index < len(self.tokens):
            token = self.tokens[index]
            if token.kind == "end" or token.text in (";", "{", "}"):
                self._count_braces(token)
                self.targets, self.is_unpacked = [], False
                is_start = True
                index += 1
                continue
            if is_start and token.kind != "comment":
                self._leave_choices(token)
                index = self._assigned(index)
                is_start = False
                continue
            index = self._next(index)
        self.words.flags = list(dict.fromkeys(self.words.flags))
        self.words.commands = list(dict.fromkeys(self.words.commands))
        return self.words

    def _text(self, index: int) -> str:
        """Return the mark or name at *index*; empty for a text."""
        if 0 <= index < len(self.tokens) and self.tokens[index].kind != "text":
            return self.tokens[index].text
        return ""

    def _count_braces(self, token: Token) -> None:
        if token.text == "{" and token.kind == "mark":
            self.depth += 1
        elif token.text == "}" and token.kind == "mark":
            self.depth -= 1
            while self.choices and self.depth < self.choices[-1].depth:
                self.choices.pop()

    def _leave_choices(self, token: Token) -> None:
        """Leave the choices that end at the line of *token*, the first of a
        statement.
        """
        while self.choices:
            choice = self.choices[-1]
            is_part = token.text in ("case", "when", "else")
            if choice.has_braces or token.indent > choice.indent or is_part:
                return
            self.choices.pop()

    def _assigned(self, index: int) -> int:
        """Record the names that a statement at *index* assigns, and return the index of
        the assigned value; *index* itself if it is not an assignment.
        """
        start = index
        if self._text(index) in _DECLARES:
            index += 1
        self.is_unpacked = self._text(index) == "["
        names: list[str] = [""]
        is_rest = False
        for at in range(index, min(index + 40, len(self.tokens))):
            token = self.tokens[at]
            if token.text == "=" and token.kind == "mark":
                self.targets = names
                for name in names:
                    self.bound.pop(name, None)
                    self.lists.pop(name, None)
                return at + 1
            if token.text == ",":
                self.is_unpacked = True
                names.append("")
            elif token.text == "...":
                is_rest = True
            elif token.kind == "name":
                # ``[first, ...rest]``: the rest is a list.
                if not names[-1] and not is_rest:
                    names[-1] = token.text
            elif token.text not in ("[", "]", "(", ")", ":"):
                break
        self.is_unpacked = False
        # The first name may be a word itself: ``args[0] === "add"``.
        return self._next(start)

    def _next(self, index: int) -> int:
        """Read the construct at *index*, and return the index of the next one."""
        token = self.tokens[index]
        if token.kind == "text":
            self._flag(index)
            return index + 1
        if token.kind != "name" or self._text(index - 1) == ".":
            return index + 1
        if token.text in ("switch", "match", "case", "when"):
            return self._choice(index)
        if token.text == "from" and self._text(index + 1) == "sys":
            self._import(index + 3)
            return index + 3
        number, end = self._word(index)
        if number is not None:
            self._compare(number, index, end)
        return end

    def _import(self, index: int) -> None:
        """Read the names of ``from sys import argv, exit``."""
        while self._text(index) and self.tokens[index].kind != "end":
            if self._text(index) == "argv":
                self.lists["argv"] = 0
            index += 1

    def _flag(self, index: int) -> None:
        """Record the text at *index* if it is a flag in a comparison."""
        flag = _FLAG.fullmatch(self.tokens[index].text)
        if flag is None:
            return
        near = {self._text(index - 1), self._text(index + 1)}
        if not near.isdisjoint(_COMPARES):
            self.words.flags.append(flag[1])

    def _word(self, index: int) -> tuple[int | None, int]:
        """Return the number of the word that the tokens at *index* denote, or None, and
        the index behind them; record the names that hold the word.
        """
        name = self.tokens[index].text
        if name in self.bound:
            return self.bound[name], index + 1
        shift, end = self._vector(index)
        if shift is None:
            return None, end
        if self._text(end) == "[" and self._text(end + 2) == "]":
            number = self._number(end + 1)
            if number is not None:
                end += 3
                name = ""
                if self._is_whole(index, end):
                    name = self.targets[0]
                    self.bound[name] = number + shift
                self.words.note(number + shift, name)
                return number + shift, end
        if self._text(index - 1) == "=":
            self._hold(shift)
        return None, end

    def _is_whole(self, index: int, end: int) -> bool:
        """Return whether the single name that the statement assigns holds the word from
        *index* to *end*, perhaps converted.
        """
        if len(self.targets) != 1 or not self.targets[0]:
            return False
        before = self._text(index - 1)
        if before == "(":
            return self._text(index - 2) in _CONVERTS and self._text(end) == ")"
        is_last = self._text(end) in ("\n", ";", "if", "or", "||", "?", ")", "")
        return before == "=" and is_last

    def form_at(self, index: int) -> tuple[int, int] | None:
        """Return the offset from an index of the list of words at *index* to the number
        of a word, and the index behind the list's name; None if no such list is named.
        """
        text = self._text(index)
        for form, shift in self.vectors.items():
            # Most tokens are not the first word of any form.
            if text != form[0]:
                continue
            texts = tuple(self._text(index + at) for at in range(len(form)))
            if texts == form:
                return shift, index + len(form)
        return None

    def _vector(self, index: int) -> tuple[int | None, int]:
        """Return the same as `form_at`, and also accept a variable that the script set
        to the list of words or to a slice of it. The offset is None at any other name.
        """
        shift, end = self.lists.get(self.tokens[index].text), index + 1
        known = self.form_at(index)
        if known is not None:
            shift, end = known
        if shift is None:
            return None, index + 1
        # ``[1:]``, ``.slice(2)``.
        if self._text(end) == "[" and self._text(end + 2) == ":":
            first = self._number(end + 1)
            closing = end + 3 if self._text(end + 3) == "]" else end + 4
            if first is not None and self._text(closing) == "]":
                return shift + first, closing + 1
        is_slice = self._text(end) == "." and self._text(end + 1) == "slice"
        if is_slice and self._text(end + 4) == ")":
            first = self._number(end + 3)
            if first is not None:
                return shift + first, end + 5
        return shift, end

    def _number(self, index: int) -> int | None:
        text = self._text(index)
        return int(text) if text.isdecimal() and len(text) < 3 else None

    def _hold(self, shift: int) -> None:
        """Record that the names that the statement assigns stand for the list, or for
        its words.
        """
        if not self.is_unpacked:
            if len(self.targets) == 1 and self.targets[0]:
                self.lists[self.targets[0]] = shift
            return
        for index, name in enumerate(self.targets):
            if name:
                self.words.note(index + shift, name)
                self.bound[name] = index + shift

    def _compare(self, number: int, index: int, end: int) -> None:
        """Record the literals that the word *number*, from *index* to *end*, is
        compared with.
        """
        if number != 1:
            return
        how = self._text(end)
        if how == "not" and self._text(end + 1) == "in":
            how, end = "in", end + 1
        if how in ("==", "==="):
            self._command(end + 1)
        elif how == "in" and self._text(end + 1) in ("(", "[", "{"):
            at = end + 2
            while at < len(self.tokens) and self.tokens[at].kind == "text":
                self._command(at)
                at += 2
        elif self._text(index - 1) in ("==", "==="):
            self._command(index - 2)

    def _command(self, index: int) -> None:
        if index < len(self.tokens) and self.tokens[index].kind == "text":
            self.words.commands.append(self.tokens[index].text)

    def _choice(self, index: int) -> int:
        """Read ``switch (word) {``, ``match word:``, or an arm of such a choice."""
        token = self.tokens[index]
        subject = index + 1
        if self._text(subject) == "(":
            subject += 1
        if subject >= len(self.tokens):
            return index + 1
        if token.text != "switch" and self.tokens[subject].kind == "text":
            self._arm(subject)
            return subject
        if self.tokens[subject].kind != "name":
            return subject
        number, end = self._word(subject)
        if number == 1:
            has_braces = token.text == "switch"
            self.choices.append(_Choice(self.depth + 1, token.indent, has_braces))
        return end

    def _arm(self, index: int) -> None:
        """Record the literals of the arm at *index*, of the innermost choice."""
        if not self.choices:
            return
        if self.choices[-1].has_braces and self.choices[-1].depth != self.depth:
            return
        while index < len(self.tokens) and self.tokens[index].kind == "text":
            self._command(index)
            if self._text(index + 1) not in ("|", ","):
                return
            index += 2
