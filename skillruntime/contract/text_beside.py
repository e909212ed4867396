"""Judge the text beside an object: an introduction is left out; a refusal, correction or other value is not.

The law: the object is the call only where nothing beside it takes it back or says something else about a parameter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any

__all__ = ["beside_fault", "called_name"]

# Words that may say that the object is not to be used; in the last sentence before it, the call is refused.
_NEGATION = re.compile(
    r"\b(?:not|never|cannot|dont|doesnt|wont|cant|without|avoid|refuse|no need|instead\s+of|rather\s+than)\b"
    r"|n['\u2019]t\b|\b(?:no(?!\s+problem)(?=\s++\w++\s*+:?\s*+$))\b",
    re.IGNORECASE,
)
# Other languages' negations, wherever they are: their sentences are not taken apart.
_FOREIGN_NEGATION = re.compile(
    r"\b(?:nicht|kein\w*|niet|geen|inte|ikke|nie|jamais|pas|nunca|jam\u00e1s|n\u00e3o|non(?!-))\b"
    "|\\b\u043d\u0435\\b"  # Russian
    "|[\u4e0d\u522b\u5225\u52ff]|\u306a\u3044|\u305a\u306b|\u9000\u3081"  # Chinese, Japanese
    "|\uc9c0 ?\ub9c8|\uc548 ?\ub3fc|\u0644\u0627 ",  # Korean, Arabic
    re.IGNORECASE,
)
# Words that judge a call: wrong, refused or an old one.
_JUDGED = (
    r"(?:wrong\w*|invalid\w*|incorrect\w*|erroneous\w*|mistak\w+|bad|broken|malformed|reject(?:ed|ing)?|denied|forbidden|disallowed"
    r"|blocked|declined|ignored|disregarded|discarded|cancell?ed|aborted|failed|obsolete|outdated|deprecated|superseded|retracted"
    r"|withdrawn|false|unsafe|dangerous|hypothetical\w*|unneeded|unnecessary|unused|errors?)"
)
_CALLED = r"(?:this|that|it|these|those|calls?|arguments?|inputs?|object|json|requests?|parameters?|above|below)"
# They count where they judge the call, not where a skill deletes, cancels or stops something: at the beginning of a
# sentence, of "this" or "the call", before "call" or "arguments", or as a command that means the object itself.
_REJECTION = re.compile(
    rf"(?:^|[.!?\n]|//|#)\W{{0,9}}(?:{_CALLED}\s+)?(?:(?:is|was|are|were)\s+)?{_JUDGED}\b"
    rf"|\b{_CALLED}(?:['\u2019]s|\s+(?:is|was|are|were|has\s+been|looks?|seems?))\s+(?:\w+\s+){{0,2}}?{_JUDGED}\b"
    rf"|\b{_CALLED}\s+(?:that|which)\s+(?:(?:is|was|has\s+been|had\s+been)\s+)?{_JUDGED}\b"
    rf"|\b{_JUDGED}\s+(?:tool\s+|function\s+)?(?:calls?|arguments?|inputs?|parameters?|requests?|json)\b"
    r"|\b(?:ignore|disregard|discard|cancel|abort|delete|remove|skip|stop|undo|revert|retract|withdraw)\s+"
    r"(?:this|that|it|these|(?:the\s+)?(?:above|following|previous|last)|the\s+call)(?:\s+(?:call|one|please|for\s+now))?(?=\s*(?:[.!,;:]|$))"
    r"|\b(?:ignore|disregard|discard)\W*$|(?:^|[.!?\n])\W{0,9}(?:old|previous|earlier)(?:\s+\w+)?\s*:\s*$"
    r"|\bno\s+(?:\w+\s+)?(?:calls?|tools?|action|functions?|need)\b|\bno\s+longer\b"
    r"|\b(?:falsch\w*|fehler\w*|ung\u00fcltig\w*|incorrect[oa]s?|inv\u00e1lid[oa]s?|err\u00f3ne[oa]s?|errad[oa]s?|erreurs?|fau(?:x|sse)"
    r"|sbagliat[oa])\b"
    "|\u043e\u0448\u0438\u0431|\u043d\u0435\u0432\u0435\u0440\u043d|\u043d\u0435\u043f\u0440\u0430\u0432"
    "|[\u932f\u9519\u8aa4\u8bef]|\u9593\u9055|\ud2c0|\uc798\ubabb|\u62d2|\u53d6\u6d88",
    re.IGNORECASE,
)
# What corrects the object before it: a word of its own at the beginning of a sentence, or a phrase. Ordinary words such
# as "also" or "wait" in a sentence ("I will wait for the result.") say nothing about the object.
_CORRECTION = re.compile(
    r"(?:^|[.!?\n]|//|#)\W{0,9}(?:wait|hold\s+on|actually|sorry|oops|whoops|hmm+|scratch|never\s*mind|rather|but|however|except"
    r"|although|nope|nein|no)\b(?!\s+(?:problem|further|other|more|additional)\b)"
    r"|\b(?:correction|corrected|on\s+second\s+thought|meant|instead|unless|only\s+if|todo|tbd"
    r"|(?:should|must|ought\s+to|needs?\s+to)\s+(?:be|have\s+been|read|say)\b(?!\s+(?:enough|fine|good|all|able|sufficient))"
    r"|make\s+(?:it|that)|(?:change|set|switch|replace|update|correct|fix|edit)[ds]?\s+(?:\w+\s+){0,4}?(?:to|with|by|as)"
    r"|(?:change|replace|correct|fix|edit)\s+(?:it|that|this))\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s)|[\u3002\uff01\uff1f]|\n\s*\n")
# Reasoning that a model closed before its answer (DeepSeek-R1 and Qwen3 write `<think>`, or only `</think>`): what is
# before it is not beside the call; an object before it is a thought, and not the call.
_REASONING_END = re.compile(r"</(?:think|thinking|thought|reasoning|scratchpad)>", re.IGNORECASE)
# `I don't know the weather, so I call the tool: {...}`: the last clause introduces, the others give its reason.
_CLAUSE = re.compile(
    r"[,;]\s+(?=(?:so|therefore|thus|hence|then|let\s+me|i\s+(?:will|need|have\s+to)|i['\u2019]ll)\b)", re.IGNORECASE
)
# What is said without meaning the object.
_POLITE = re.compile(
    r"\b(?:(?:do\s+not|don['\u2019]?t)\s+(?:hesitate|worry)|no\s+(?:problem|worries)|not\s+a\s+problem)\b",
    re.IGNORECASE,
)
# ReAct (Yao et al., 2022): `Action` names the tool, and is not a parameter; so does `Tool` before `Input`.
_REACT = re.compile(
    r"^[ \t]*(?:Action|(?:Tool|Function)(?:[ _]Name)?)[ \t]*:[ \t]*([\w.:/-]+)[ \t]*$"
    r"(?=\s*(?:(?:Action|Tool|Function)[ _])?(?:Input|Arguments|Args|Parameters)\s*:)",
    re.MULTILINE | re.IGNORECASE,
)
# A sentence that introduces a call of its own: what was said before it is about something else.
_INTRODUCES = re.compile(
    r"\b(?:again|now|retry\w*|let\s+me|here(?:\s+\w+)?|input|arguments|sure|okay)\b[^\n]*:\s*$", re.IGNORECASE
)
# `Let me try again, the previous call was wrong: {...}`: the object is the new call, where the text says there is one.
_RETRIES = re.compile(
    r"\b(?:let\s+me|i\s+will|i['\u2019]ll|now)\s+(?:\w+\s+)?(?:try|retry|call|do)\b[^.!?\n]{0,40}?(?:\bagain\b(?!\s+(?:later|if|when|once|after|unless)\b)|(?<=retry)\b)"
    r"|\b(?:trying|retrying)\b(?:\s+(?:it\s+)?again)?"
    r"|\bhere(?:['\u2019]s|\s+is)\s+(?:the|a)\s+(?:right|correct|corrected|fixed|new)\s+(?:one|call|input|request)\b",
    re.IGNORECASE,
)
_PREVIOUS = re.compile(
    rf"(?<!\bif\s)(?<!\bunless\s)(?<!\bwhether\s)\b(?:the|my|that)\s+(?:previous|last|first|earlier|prior)\s+(?:\w+\s+)?(?:call|attempt|try|request|input|arguments?|one)\s+"
    rf"(?:was|were|had\s+been)\s+(?:\w+\s+){{0,1}}?{_JUDGED}(?=\s*(?:[.,:;!]|\bso\b|$))",
    re.IGNORECASE,
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
# `The city was not specified` gives no value.
_SAYS_NOTHING = re.compile(
    r"(?:not\s+(?:yet\s+)?(?:specified|given|mentioned|provided|stated|known)|unknown|missing|required|optional)\b",
    re.IGNORECASE,
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
    if _REASONING_END.search(after):
        return "the object is inside the model's reasoning", None
    before = _unmarked(_NAMED_CALL.sub("", _REACT.sub("", _REASONING_END.split(before)[-1])))
    after = _unmarked(after)
    is_struck_out = before.endswith("~~") and after.startswith("~~")  # Markdown
    if is_struck_out or _rejects_before(_POLITE.sub("", before)):
        return "the text before the object says not to use it", None
    behind = _POLITE.sub("", after)
    if _WORD.search(behind) and (_negates_call(behind) or _REJECTION.search(behind) or _CORRECTION.search(behind)):
        return "the text after the object may correct it: {}", after[:100]
    known: dict[str, list[Any]] = {}
    for name, said in _members_beside(before, after, {_folded(name) for name in names}):
        if not known:  # most texts name no parameter
            for key, member in _members(value):
                known.setdefault(_folded(key), []).append(member)
        if not any(_says(said, member) for member in known.get(_folded(name), ())) and not _is_topic(said, value):
            return "beside the object there is {}", f"{name}: {said}"
    return None


def called_name(text: str) -> str:
    """Return the name of the tool that *text* calls with the first object in it; empty if it names none.

    >>> called_name('get_news({"city": "Paris"})'), called_name("Action: get_news\\nAction Input: {}")
    ('get_news', 'get_news')
    >>> called_name('Here (as asked): {"city": "Paris"}')
    ''
    """
    before = _REASONING_END.split(text[: text.find("{")])[-1][-MAX_NAMING:]
    named = [match for pattern in (_CALLED_WITH, _REACT, _NAMED_CALL) for match in pattern.finditer(before)]
    names = [next(filter(None, match.groups())) for match in named]
    return next((name for name in reversed(names) if name.casefold() not in _ANY_CALL), "")


def _unmarked(text: str) -> str:
    """Return *text* without the marks of chat templates, whose words are not parameters: ``<|python_tag|>``."""
    return _TEMPLATE_MARK.sub(" ", text)


_TEMPLATE_MARK = re.compile(r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>")
_TOOL = r"([^\W\d][\w.:/-]{0,120})"
# How chat templates name the tool right before its arguments; the first is that of Llama and Anthropic.
_NAMED_CALL = re.compile(
    rf"<(?:\uff5cDSML\uff5c)?(?:function|invoke|tool|tool_call)(?:\s+name\s*=|=)\s*[\"']?{_TOOL}[\"']?\s*>"
    rf"|(?:<\|(?:channel|start)\|>\w+\s+to=(?:functions\.)?|\bto=functions\.){_TOOL}"  # OpenAI's Harmony
    rf"|(?<![\w.:/-]){_TOOL}\s*<\|tool_call_argument_begin\|>"  # Kimi
    rf"|<\uff5ctool\u2581sep\uff5c>{_TOOL}|(?<![\w.:/-]){_TOOL}<\uff5ctool\u2581sep\uff5c>(?=\s*$)"  # DeepSeek
    rf"|\[TOOL_CALLS\]\s*{_TOOL}(?=\s*(?:\[(?:ARGS|CALL_ID)\]|$))"  # Mistral
    rf"|<tool_call>\s*{_TOOL}(?=\s*$)"  # GLM
    rf"|\u273fFUNCTION\u273f\s*:\s*{_TOOL}"  # Qwen-Agent
)
# `get_news({...})`, `get_news(**{...})` and `get_news(params={...})`; a parenthesis behind a space is one of prose.
_CALLED_WITH = re.compile(r"([^\W\d][\w.:/-]*)\(\s*(?:\*\*|\w+\s*=\s*)?$")
# Names of no tool in particular.
_ANY_CALL = frozenset({"call", "tool_call", "function_call", "function", "tool", "invoke", "run", "print", "dict"})
MAX_NAMING = 400


def _rejects_before(text: str) -> bool:
    # `I will not call {...}` is not a call. `I could not find it. Trying again: {...}` is one.
    if _RETRIES.search(text):  # what was wrong with the call before is the reason for this one
        text = _PREVIOUS.sub("", text)
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    if not sentences:
        return False
    *reasons, last = _CLAUSE.split(sentences[-1])
    earlier = " ".join([*sentences[:-1], *reasons])
    # A sentence that ended says something of its own: `She wants Paris, not Rome. {...}`
    has_ended = _ENDED.search(text[-60:]) is not None
    if _REJECTION.search(last) or _negates_call(last) or (not has_ended and _NEGATION.search(last)):
        return True
    if _INTRODUCES.search(last) and not _REPORTED.search(last):
        earlier = " ".join(match[0] for match in _IMPERATIVE.finditer(earlier))
    return _REJECTION.search(earlier) is not None or _negates_call(earlier)


def _negates_call(text: str) -> bool:
    """Whether *text* says not to make the call, or that it is not the right one."""
    return any(pattern.search(text) for pattern in (_IMPERATIVE, _NOT_RIGHT, _FOREIGN_NEGATION))


_ENDED = re.compile(
    r"(?:[.!?]|[\u3002\uff01\uff1f])[\s`*_]*(?:json)?\s*$|\n\s*\n\s*(?:```(?:json)?\s*)?$", re.IGNORECASE
)
_NOT_RIGHT = re.compile(
    r"(?:\bnot|n['\u2019]t(?:\s+be)?)\s+(?:really\s+|actually\s+)?(?:this|that\b(?!\s+\w)|correct|right|valid|needed|necessary|required"
    r"|ok(?:ay)?|ready|final|allowed|to\s+be\s+(?:used|called|run|sent)|what\b|meant|a\s++(?:(?:real|valid)\s*+)?call|the\s+(?:call|right|correct))\b"
    r"|\bno\s+longer\b|\bavoid\s+(?:this|calling|using|running)\b|\binstead\s+of\s+(?:this|calling|using)\b",
    re.IGNORECASE,
)
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
            if match["verb"] and _SAYS_NOTHING.match(said):
                continue
            says_value = said[:1].isdigit() or said[:1] in tuple("\"'-[{")
            if said and (match["sign"] or match["verb"] or is_option or (is_quoted and match["quote"]) or says_value):
                yield name, said


# The names of a contract's parameters are asked for at each call.
@lru_cache(maxsize=4096)
def _folded(name: str) -> str:
    """Return *name* without case, separators and a plural's ``s``: ``max items`` and ``maxItems`` are one."""
    return "".join(_WORD.findall(name)).casefold().rstrip("s")


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    """Yield each member of *value* and of the objects in it."""
    pending = [value]
    while pending:  # not by recursion, for the object may be nested deeply
        part = pending.pop()
        if isinstance(part, dict):
            yield from part.items()
            pending += part.values()


_TOPIC = re.compile(r"(?:about|regarding|concerning)\s+(?P<topic>[^\d\s][^\d]*)$", re.IGNORECASE)


def _is_topic(said: str, value: Any) -> bool:
    """Whether *said*, as in `the query is about Paris`, only says what it is about, in words that *value* has too."""
    match = _TOPIC.match(_SENTENCE_END.split(said, maxsplit=1)[0].strip(" .!:"))
    if match is None:
        return False
    topic = match["topic"].casefold()
    texts = [member.strip().casefold() for _, member in _members(value) if isinstance(member, str)]
    return any(topic in text or re.search(rf"\b{re.escape(text)}\b", topic) for text in texts if text)


def _says(said: str, member: Any) -> bool:
    """Whether *said*, as prose writes it, is the value *member*."""
    said = _SENTENCE_END.split(said, maxsplit=1)[0].strip().rstrip(".!").strip("\"'`)]* ")
    written = member if isinstance(member, str) else json.dumps(member, ensure_ascii=False, default=str)
    return said.casefold() == written.strip().rstrip(".").casefold()
