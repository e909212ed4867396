"""Judge the text beside an object: an introduction is left out; a refusal, correction or other value is not.

The law: the object is the call only where nothing beside it takes it back or says something else about a parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

__all__ = ["beside_fault"]

# Words that may say that the object is not to be used; in the last sentence before it, the call is refused.
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|dont|doesnt|wont|cant|without|avoid|refuse|no need|instead\s+of|rather\s+than)\b"
    r"|n['\u2019]t\b|\b(?:nicht|kein\w*|niet|geen|inte|ikke|nie|jamais|pas|nunca|jam\u00e1s|n\u00e3o|non|no(?!\s+problem)(?=\s+\w+\s*:?\s*$))\b"
    "|\\b\u043d\u0435\\b"  # Russian
    "|[\u4e0d\u522b\u5225\u52ff]|\u306a\u3044|\u305a\u306b|\u9000\u3081"  # Chinese, Japanese
    "|\uc9c0 ?\ub9c8|\uc548 ?\ub3fc|\u0644\u0627 ",  # Korean, Arabic
    re.IGNORECASE,
)
# Words that say that the object is wrong, refused or an old one.
_REJECTION = re.compile(
    r"\b(?:reject\w*|invalid\w*|incorrect\w*|wrong\w*|errors?|erroneous\w*|mistak\w+|fail(?:s|ed|ures?)?|bad|broken|malformed"
    r"|den(?:y|ied)|forbidden|disallow\w*|block(?:s|ed)|declin\w+|ignor\w+|disregard\w*|discard\w*|cancel\w*|abort\w*"
    r"|stop|skip\w*|delet\w+|remov\w+|obsolete|outdated|deprecated|superseded|undo|revert\w*|retract\w*|withdr\w+"
    r"|false|unsafe|dangerous|hypothetical\w*|unneeded|unnecessary|unused|no longer"
    r"|no\s+(?:\w+\s+)?(?:calls?|tools?|action|functions?|need)\b"
    r"|falsch\w*|fehler\w*|ung\u00fcltig\w*|incorrect[oa]s?|inv\u00e1lid[oa]s?|err\u00f3ne[oa]s?|errad[oa]s?|erreurs?|fau(?:x|sse)|sbagliat[oa])\b"
    "|\u043e\u0448\u0438\u0431|\u043d\u0435\u0432\u0435\u0440\u043d|\u043d\u0435\u043f\u0440\u0430\u0432|[\u932f\u9519\u8aa4\u8bef]|\u9593\u9055|\ud2c0|\uc798\ubabb|\u62d2|\u53d6\u6d88",
    re.IGNORECASE,
)
# Words that correct what was said before them; after the object they may correct it.
_CORRECTION = re.compile(
    r"\b(?:wait|hold\s+on|actually|sorry|oops|whoops|hmm+|correction|corrected|correct(?!ly)|scratch|never\s*mind|rather|but|except\w*|however|although|though"
    r"|on\s+second\s+thought|meant|mean|should(?!\s+(?:answer|help|work|do|give|return|you|find|provide|be\s+(?:enough|fine|good|all)))"
    r"|must|ought|change[ds]?|replac\w+|updat\w+|adjust\w*|fix(?:ed)?|edit(?:ed)?|modif\w+|amend\w*|switch\w*|swap\w*|instead|set|make\s+(?:it|that|the)"
    r"|use\s+(?!this|these|it|that\b|the\s+(?:above|result|tool))|unless|only\s+if|if\s+and\s+only|alternatively|or|plus|also|add|todo|tbd|nope|nein|no(?=[\s,.!;:]*$|[,.!;:]))\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f]|\n\s*\n")
# What is said without meaning the object.
_POLITE = re.compile(
    r"\b(?:(?:do\s+not|don['\u2019]?t)\s+(?:hesitate|worry)|no\s+(?:problem|worries)|not\s+a\s+problem)\b",
    re.IGNORECASE,
)
# ReAct (Yao et al., 2022): `Action` names the tool, and is not a parameter.
_REACT = re.compile(r"^\s*Action\s*:\s*[\w.:/-]+\s*$(?=\s*Action Input\s*:?)", re.MULTILINE)
# A sentence that introduces a call of its own: what was said before it is about something else.
_INTRODUCES = re.compile(
    r"\b(?:again|now|retry\w*|let\s+me|here(?:\s+\w+)?|input|arguments|sure|okay)\b[^\n]*:\s*$", re.IGNORECASE
)
_REPORTED = re.compile(r"\b(?:sent|called|tried|used|previous\w*|old|last|earlier|was|were|had)\b", re.IGNORECASE)

_VALUE = r"""(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\n,;<|]*)"""
_COLON = "[:=\uff1a\uff1d]"
_KEY = re.compile(
    rf"""(?=(?P<mark>["'`\u201c\u2018\u300c])(?P<name>[^"'`\u201d\u2019\u300d\n]{{1,80}})["'`\u201d\u2019\u300d]\s*{_COLON}\s*{_VALUE})"""
)
# The numbers bound each part, so that a text of a thousand open tags takes linear time.
_TAG = re.compile(
    r"""(?=<[^<>]{0,200}?(?P<name>[^\W\d][\w.-]{0,80})["']?\s{0,9}/?>\s{0,99}(?:<[^<>]{0,200}>\s{0,99}){0,4}(?P<value>[^<]*))"""
)
# The XML in which some models were trained to call: `<parameter name="city" value="Rome"/>`.
_ATTRIBUTE = re.compile(
    r"""<(?P<tag>[\w:.-]+)(?:\s+name=["']?(?P<name>[\w.-]+)["']?)?\s+value=["']?(?P<value>[^"'<>/]*)["']?\s*/?>"""
)
# GLM's template writes keys and values as elements of their own.
_ARGUMENT = re.compile(r"<arg_key>\s{0,99}(?P<name>[^<]{0,99}?)\s{0,99}</arg_key>\s*<arg_value>\s*(?P<value>[^<]*)")
_WORD = re.compile(r"[^\W_]+")
_BETWEEN_WORDS = re.compile(r"[ \t_.-]{0,2}")
_QUOTES = "\"'`*\u201c\u201d\u2018\u2019\u300c\u300d()[]"
# `days: 5`, `days -> 5`, `days are 5`, `--days 5`, `"days" 5`, `days 5`.
_RELATION = re.compile(
    rf"""(?P<quote>[{re.escape(_QUOTES)}]{{0,4}})\s{{0,9}}"""
    rf"""(?:(?P<sign>{_COLON}+>?|[-~\u2013\u2014]+>|[-\u2013\u2014](?=\s)|[\u2192\u21d2\u27a1\u2248\u2260<>|/]|!=|:=)"""
    r"""|(?P<verb>(?:(?:is|are|was|were|be|equals?|becomes?|to|should|must|will|would|shall|can|set|being|really|now|value)\b\s*)+))?\s{0,9}"""
    + _VALUE
)
_NUMBER_BEFORE = re.compile(r"[-+]?\d[\d.,]*\s{0,3}$")
MAX_WORDS = 4
MAX_TEXT = 50_000


def beside_fault(before: str, after: str, value: Any, names: Collection[str]) -> tuple[str, str | None] | None:
    """Return what the text *before* or *after* an object says against it: a phrase, and what its ``{}`` quotes.

    *names* are the declared parameters. ``query: {...}`` introduces the object; ``"days": 5`` behind it is a member
    that would be lost.

    >>> beside_fault("Here you are:", "Hope this helps!", {"days": 5}, {"days"}) is None
    True
    >>> beside_fault("", "Days: 3", {"days": 5}, {"days"})
    ('beside the object there is {}', 'Days: 3')
    """
    if len(before) + len(after) > MAX_TEXT:
        return "beside the object there is a long text", None
    before = _REACT.sub("", before)
    if _rejects_before(_POLITE.sub("", before)):
        return "the text before the object says not to use it", None
    behind = _POLITE.sub("", after)
    if _NEGATION.search(behind) or _REJECTION.search(behind) or _CORRECTION.search(behind):
        return "the text after the object may correct it: {}", after[:100]
    known: dict[str, list[Any]] = {}
    for name, member in _members(value):
        known.setdefault(_folded(name), []).append(member)
    for name, said in _members_beside(before, after, {_folded(name) for name in names}):
        if not any(_says(said, member) for member in known.get(_folded(name), ())):
            return "beside the object there is {}", f"{name}: {said}"
    return None


def _rejects_before(text: str) -> bool:
    # `I will not call {...}` is not a call. `I could not find it. Trying again: {...}` is one.
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    if not sentences:
        return False
    last, earlier = sentences[-1], " ".join(sentences[:-1])
    if _NEGATION.search(last) or _REJECTION.search(last):
        return True
    if _INTRODUCES.search(last) and not _REPORTED.search(last):
        earlier = " ".join(_IMPERATIVE.findall(earlier))
    return _REJECTION.search(earlier) is not None or _IMPERATIVE.search(earlier) is not None


# What no later introduction takes back.
_IMPERATIVE = re.compile(
    r"\bno\s+(?:\w+\s+)?(?:calls?|tools?|action|functions?)\b|(?:\bdo\s+not|\bdon['\u2019]?t|\bnever|\bcannot|\bcan['\u2019]t|\bwill\s+not|\bwon['\u2019]t|\bmust\s+not)"
    r"\s+(?:\w+\s+)?(?:call|run|use|send|execut\w+|invok\w+|do)\b",
    re.IGNORECASE,
)


def _members_beside(before: str, after: str, names: set[str]) -> Iterator[tuple[str, str]]:
    """Yield each name with the value that the text beside the object gives it: a quoted name, or a declared one."""
    for text in (before, after):
        for pattern in (_KEY, _TAG, _ARGUMENT, _ATTRIBUTE):
            for match in pattern.finditer(text):
                said = match["value"].strip().strip("`").strip()
                introduces = text is before and _is_introduction(text, match)
                name = match["name"] or match["tag"] if pattern is _ATTRIBUTE else match["name"]
                if said and not introduces and (pattern is _KEY or _folded(name) in names):
                    yield name, said
        yield from _named(text, names, is_before=text is before)


def _is_introduction(text: str, match: re.Match[str]) -> bool:
    """Whether *match* is at the end of the text before the object, and only its fence is between: ``city: ```json``."""
    return match.end("value") == len(text) and match["value"].strip().strip("`").strip() in ("", "json", "JSON")


def _named(text: str, names: set[str], *, is_before: bool) -> Iterator[tuple[str, str]]:
    """Yield the declared *names* in *text*, in whatever case and separators, each with the value beside it."""
    words = [(match.start(), match.end()) for match in _WORD.finditer(text)]
    for index, (start, _) in enumerate(words):
        for last in range(index, min(index + MAX_WORDS, len(words))):
            if last > index and not _BETWEEN_WORDS.fullmatch(text, words[last - 1][1], words[last][0]):
                break
            end = words[last][1]
            if _folded(text[start:end]) not in names:
                continue
            name = text[start:end]
            number = _NUMBER_BEFORE.search(text, max(0, start - 40), start)
            if number is not None:
                yield name, number[0].strip()
            match = _RELATION.match(text, end)
            if match is None or (is_before and _is_introduction(text, match)):
                continue
            said = match["value"].strip().strip("`*|").strip()
            is_option = text[max(0, start - 2) : start] in ("--", " -", "-")
            is_quoted = text[start - 1 : start] in tuple(_QUOTES) if start else False
            # `the city` alone says nothing about it; `city "Rome"` and `days 5` do.
            says_value = said[:1].isdigit() or said[:1] in tuple("\"'-[{")
            if said and (match["sign"] or match["verb"] or is_option or (is_quoted and match["quote"]) or says_value):
                yield name, said


def _folded(name: str) -> str:
    """Return *name* without case, separators and a plural's ``s``: ``max items`` and ``maxItems`` are one."""
    return "".join(_WORD.findall(name)).casefold().rstrip("s")


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    """Yield each member of *value* and of the objects in it."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield name, member
            yield from _members(member)


def _says(said: str, member: Any) -> bool:
    """Whether *said*, as prose writes it, is the value *member*."""
    said = _SENTENCE_END.split(said, maxsplit=1)[0].strip().rstrip(".!").strip("\"'`)]* ")
    written = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False, default=str)
    return said.casefold() == written.strip().rstrip(".").casefold()
