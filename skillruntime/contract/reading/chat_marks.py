r"""List the marks by which chat templates separate turns, reasoning, calls and results:
one table.

`call_forms.py` reads calls by this table, and ``catalog/visibility.py`` escapes skill
texts for a model by it, so that a text cannot imitate a mark. The comments name models
whose published chat templates write the mark.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from typing import Literal, NamedTuple

from skillruntime.contract.reading.tool_names import ARGUMENT_KEYS

__all__ = [
    "CHAT_MARKS",
    "DSML",
    "ENVELOPE_MARKS",
    "ChatMark",
    "Holds",
    "Role",
    "alternatives",
    "closers",
    "escaped_marks",
]

WIDE_BAR = "\uff5c"
# DeepSeek's later templates write all of their tags in this namespace; V4.1 adds a
# space after it.
DSML = f"{WIDE_BAR}DSML{WIDE_BAR}"


# The content of the object after a call's mark: the tool's name and the arguments
# ("envelope"), or only the arguments, because the form itself has the name. Empty if
# the form does not say.
Holds = Literal["", "envelope", "arguments"]


class Role(Enum):
    """The function of a mark in the text that a model wrote."""

    THOUGHT_TAG = "the name of a tag around reasoning"
    RESULT_TAG = "the name of a tag around a tool's result"
    CALL_TAG = "the name of a tag around calls or arguments"
    THOUGHT = "begins reasoning, which ``closer`` ends"
    RESULT = "begins a tool's result, which ``closer`` ends"
    CALL = "begins a call, which a template of `templates.py` reads"
    MARK = "stands between the parts of a message and is skipped"
    TURN = "begins the turn of another speaker, which a reply never contains"


class ChatMark(NamedTuple):
    """One mark: the *pattern* of its text, or of a tag's name.

    A mark that is not *escaped* is left as it is in the texts that a model reads: no
    template reserves it, and instructions use it for other things.
    """

    role: Role
    pattern: str
    closer: str = ""
    escaped: bool = True


CHAT_MARKS: tuple[ChatMark, ...] = (
    # Reasoning. `think` is a token of DeepSeek R1, Qwen 3, GLM 4.5 and MiniMax M2;
    # `seed:think` of Seed-OSS. Prompts ask for the other tags.
    ChatMark(Role.THOUGHT_TAG, "think|seed:think"),
    ChatMark(
        Role.THOUGHT_TAG,
        "thinking|thoughts?|reasoning|reflection|analysis|scratchpad",
        escaped=False,
    ),
    # Kimi-VL, Sky-T1 and OpenThinker, Cohere, Magistral, Gemma 4, Kimi K3.
    ChatMark(Role.THOUGHT, "\u25c1think\u25b7", "\u25c1/think\u25b7"),
    ChatMark(Role.THOUGHT, r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),
    ChatMark(Role.THOUGHT, r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),
    ChatMark(Role.THOUGHT, r"\[THINK\]", r"\[/THINK\]"),
    ChatMark(Role.THOUGHT, r"<\|channel>thought", r"<channel\|>"),
    ChatMark(Role.THOUGHT, r"<\|open\|>think<\|sep\|>", r"<\|close\|>think<\|sep\|>"),
    # The result of a tool: the tags of Qwen, GLM, Granite and of Claude's older form;
    # and tags that prompts ask for.
    ChatMark(
        Role.RESULT_TAG,
        r"(?:tool|function)_(?:response|result|output)s?|tool_call_result",
    ),
    ChatMark(Role.RESULT_TAG, r"observation|response|results?|output", escaped=False),
    # Mistral, Cohere, DeepSeek V3, Qwen and other ChatML, Llama 3, GLM 4, Gemma 4. The
    # token that ends any turn also closes a tool's turn.
    ChatMark(Role.RESULT, r"\[TOOL_RESULTS\]", r"\[/TOOL_RESULTS\]"),
    ChatMark(Role.RESULT, r"<\|START_TOOL_RESULT\|>", r"<\|END_TOOL_RESULT\|>"),
    ChatMark(
        Role.RESULT,
        "<\uff5ctool\u2581outputs\u2581begin\uff5c>",
        "<\uff5ctool\u2581outputs\u2581end\uff5c>",
    ),
    ChatMark(
        Role.RESULT,
        "<\uff5ctool\u2581output\u2581begin\uff5c>",
        "<\uff5ctool\u2581output\u2581end\uff5c>",
    ),
    ChatMark(Role.RESULT, r"<\|im_start\|>tool", r"<\|im_end\|>"),
    ChatMark(Role.RESULT, r"<\|start_header_id\|>(?:ipython|tool)", r"<\|eot_id\|>"),
    ChatMark(Role.RESULT, r"<\|observation\|>", r"<\|assistant\|>"),
    ChatMark(Role.RESULT, r"<\|tool_response>", r"<tool_response\|>"),
    # Calls that `templates.py` reads: Qwen3-Coder, Gemma, MiniMax and DeepSeek, GLM.
    ChatMark(Role.CALL, r"<function=|<parameter=[^<>]{1,120}>\s*<parameter="),
    ChatMark(Role.CALL, r"<(?:\|tool_call|start_function_call)>\s*call:"),
    ChatMark(Role.CALL, rf"<(?:antml:|{DSML} ?)?invoke\s"),
    ChatMark(Role.CALL, r"<tool_call>\s*[^\W\d]"),
    ChatMark(Role.CALL, r"<arg_key>"),
    ChatMark(Role.CALL, r"<(?:function|tool|tool_call)\s+name"),
    # Kimi K2 and K3, DeepSeek V3, Mistral, and harmony without its tokens.
    ChatMark(Role.CALL, r"<\|tool_call_begin"),
    ChatMark(Role.CALL, r"<\|open\|>call\s"),
    ChatMark(Role.CALL, "<\uff5ctool\u2581call\u2581begin"),
    ChatMark(Role.CALL, r"\[TOOL_CALLS\]\s*[^\W\d]"),
    ChatMark(Role.CALL, r"\bto=functions\.\S{1,120}\s+(?:json\s*)?\{", escaped=False),
    # Tags around calls: Hermes, Qwen and GLM; Claude's older form; MiniMax; DeepSeek.
    ChatMark(
        Role.CALL_TAG,
        rf"(?:antml:|minimax:|seed:|{DSML} ?)?"
        r"(?:(?:tool|function)_?(?:calls|call|uses|use))",
    ),
    ChatMark(Role.CALL_TAG, rf"{DSML} ?(?:calls|invoke)|antml:invoke|invoke"),
    # Tags that prompts without a template ask for; they are common in other texts.
    ChatMark(
        Role.CALL_TAG,
        "|".join(("functions?", "tools?", "calls?", *sorted(ARGUMENT_KEYS))),
        escaped=False,
    ),
    ChatMark(Role.MARK, "</?TOOLCALL>"),
    # Marks that are not tags. First, the marks of all templates with bars: ChatML,
    # Llama 3, GLM, Phi, Granite, DeepSeek. Then Gemma's marks, which have a bar on one
    # side.
    ChatMark(Role.MARK, r"<[|\uff5c][^<>|\uff5c\n]{1,40}[|\uff5c]>"),
    ChatMark(Role.MARK, r"<(?:(?:start|end)_of_turn|end_function_call|tool_call\|)>"),
    # Llama 2 and Mistral: the ends of a text, and words in brackets.
    ChatMark(Role.MARK, r"</?s>|</s\Z", escaped=False),
    ChatMark(
        Role.MARK,
        r"\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS"
        r"|TOOL_CONTENT|THINK|MODEL_SETTINGS)\]",
    ),
    ChatMark(Role.MARK, r"\[/?[A-Z][A-Z_]{2,}\]|functools(?=\[)", escaped=False),
    # Turns of Gemma 3 and 4, and their marks around functions and texts.
    ChatMark(Role.TURN, r"</(?:start|end)_of_turn>|<\|[\w\"]{1,30}>|<[\w\"]{1,30}\|>"),
    ChatMark(
        Role.TURN, r"<(?:start|end)_function_(?:call|response|declaration)>|<escape>"
    ),
    # The begin and end tokens of texts in Gemma, Cohere, GLM, Seed-OSS, Hunyuan, T5's
    # relatives, Baichuan, Nemotron and LongCat.
    ChatMark(Role.TURN, r"<(?:bos|eos|pad|unk|BOS_TOKEN|EOS_TOKEN|sop|eop)>"),
    ChatMark(Role.TURN, r"\[(?:gMASK|sMASK|MASK)\]"),
    ChatMark(Role.TURN, r"<seed:(?:bos|eos|pad|cot_budget_reflect)>"),
    ChatMark(Role.TURN, r"<(?:extra_id_|reserved_|SPECIAL_)\d{1,4}>"),
    ChatMark(Role.TURN, r"</?longcat_\w{1,30}>"),
    # Llama 2, EXAONE, MiniMax, Nemotron Nano.
    ChatMark(Role.TURN, r"<</?SYS>>"),
    ChatMark(Role.TURN, r"\[\|\w{1,30}\|\]"),
    ChatMark(Role.TURN, r"\]~!?b\[?|\[e~\["),
    ChatMark(Role.TURN, r"</?(?:TOOL_RESPONSE|AVAILABLE_TOOLS)>"),
    # The parts of calls as single marks: Qwen3-Coder, GLM, MiniMax, Claude's older
    # form.
    ChatMark(Role.TURN, r"<parameter=[^<>\n]{1,120}>|</(?:function|parameter)>"),
    ChatMark(Role.TURN, r"</?arg_(?:key|value)>"),
    ChatMark(Role.TURN, rf"<(?:antml:|{DSML} ?)?parameter\s+name\s*="),
    # Any other namespace around the same words.
    ChatMark(
        Role.TURN,
        r"</?[\w.-]{1,20}:(?:tool|function)_(?:calls?|responses?|results?|outputs?)>",
    ),
    # The tags that agents write around instructions and reminders.
    ChatMark(Role.TURN, r"</?(?:system|system-reminder)[\s/>]"),
    # Turns in plain text: Claude 2 and its relatives; Alpaca and Solar. `User:` is left
    # out: 13 of 5,551 real SKILL.md files write a conversation with it.
    ChatMark(Role.TURN, r"\n\n(?:Human|Assistant):"),
    ChatMark(
        Role.TURN, r"\n###\ (?:Instruction|Response|System|User|Human|Assistant):"
    ),
)
# The marks after which a template writes the tool's name and the arguments as one
# object, or a list of such objects: Hermes and Qwen, Llama 3, Mistral before its 11th
# tokenizer, Granite, Phi 4 and Nemotron Nano, Firefunction.
ENVELOPE_MARKS = (
    "<tool_call>",
    r"<\|python_(?:tag|start)\|>",
    r"\[TOOL_CALLS\]",
    r"<\|tool_calls?\|>",
    "<TOOLCALL>",
    "functools",
)
_TAGS = (Role.THOUGHT_TAG, Role.RESULT_TAG, Role.CALL_TAG)


def alternatives(role: Role) -> str:
    """Return the patterns of all marks that have *role*, as one expression."""
    return "|".join(mark.pattern for mark in CHAT_MARKS if mark.role is role)


def closers(role: Role) -> str:
    """Return the closing patterns of the marks that have *role*, as one expression."""
    return "|".join(mark.closer for mark in CHAT_MARKS if mark.role is role)


@cache
def escaped_marks() -> re.Pattern[str]:
    """Return one expression for all escaped marks, in upper or lower case.

    Each match can be broken after its first character. The expression is compiled at
    its first use, because most texts do not have a character with which a mark begins.
    """
    patterns: list[str] = []
    for mark in CHAT_MARKS:
        if not mark.escaped:
            continue
        if mark.role in _TAGS:
            patterns.append(rf"</?(?:{mark.pattern})[\s/>]")
            continue
        patterns.append(mark.pattern)
        if mark.closer:
            patterns.append(mark.closer)
    return re.compile("|".join(patterns), re.IGNORECASE)
