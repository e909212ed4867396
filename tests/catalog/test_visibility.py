"""Nothing that a reader cannot see reaches a model or a terminal; what Unicode gives a
meaning stays.
"""

from __future__ import annotations

import pkgutil
import sys
import unicodedata
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillruntime.catalog import discover, visible_text
from skillruntime.catalog.visibility import (
    JOINER,
    escaped,
    framed,
    hidden_characters,
    is_visible,
    is_visible_utf_8,
    unescaped,
    visible_line,
    without_tag,
)
from tests.catalog.conftest import WriteSkill
from tests.catalog.parts import lint
from tests.contract.templates import FORMS


def every_character() -> Iterator[str]:
    return map(chr, range(sys.maxunicode + 1))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("Reads PDF", "Reads PDF"),
        ("a\U000e0049\U000e0067b", "ab"),
        ("pay\u202eslliB\u2066", "payslliB"),
        ("ig\u200bn\u2060o\ufeffre", "ignore"),
        ("x\U000e0100\U000e01efy\ufe00", "xy"),
        ("a\u3164\u2800\u034f\uffa0b", "ab"),
        ("a\ue000\U000f0000\U0010fffdb", "ab"),
        ("a\x1b[31;1mred\x1b[0m\x9b2Jb", "aredb"),
        ("a\x1b]0;title\x07b\x1b]8;;https://x\x1b\\c", "abc"),
        ("a\x1b]0;never ended b", "a0;never ended b"),
        ("a\x00b\x07c\x85d\u2028e\r\nf\tg", "a b c d e f g"),
        ("\ud800a\ufffe", "a"),
        ("", ""),
        ("  two   spaces ", "two spaces"),
    ],
)
def test_hidden_characters_are_removed(text: str, line: str) -> None:
    """Each kind, and escape sequences as a whole."""
    assert visible_line(text) == line


@pytest.mark.parametrize(
    "text",
    [
        "\u2764\ufe0f",  # a heart as emoji
        "1\ufe0f\u20e3",  # a keycap
        # a woman with a skin tone at a computer
        "\U0001f469\U0001f3fd\u200d\U0001f4bb",
        "\U0001f3f3\ufe0f\u200d\U0001f308",  # the rainbow flag
        "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian: I want
        "\u0915\u094d\u200d\u0937",  # Devanagari: k and ssa side by side
        "\u09b0\u200d\u09cd\u09af",  # Bengali: ra and ya-phalaa
        "Zeile\n\tmit Umlaut \xe4, \u4e2d\u6587, \U0001f600",
    ],
)
def test_what_unicode_gives_a_meaning_stays(text: str) -> None:
    """Emoji sequences (UTS 51), joiners in Persian and Indic scripts (RFC 5892), every
    visible letter.
    """
    assert visible_text(text) == text
    assert hidden_characters(text) == {}


@pytest.mark.parametrize(
    "text",
    [
        "a\u200db",
        "a\ufe0f",
        "1\ufe0f",
        "\u200d",
        "\u0645\u200cx",
        "\u2764\ufe0f\ufe0f",
        "a\u200cb",
    ],
)
def test_a_joiner_without_a_meaning_is_removed(text: str) -> None:
    """Between Latin letters, at an end, twice."""
    assert visible_text(text) in {"ab", "a", "1", "", "\u0645x", "\u2764\ufe0f"}
    assert sum(hidden_characters(text).values()) == 1


def test_every_format_character_is_hidden() -> None:
    """Of Unicode's category Cf only the signs stay that are drawn, around numbers and
    hieroglyphs.
    """
    kept = [
        each
        for each in every_character()
        if unicodedata.category(each) in ("Cf", "Cc", "Co", "Cs") and is_visible(each)
    ]

    drawn = {
        *range(0x600, 0x606),
        0x6DD,
        0x70F,
        0x890,
        0x891,
        0x8E2,
        0x110BD,
        0x110CD,
        *range(0x13430, 0x13440),
    }
    assert {ord(each) for each in kept} <= drawn | {ord("\n"), ord("\t")}


@pytest.mark.parametrize("step", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_the_quick_look_agrees_with_the_full_one(step: int) -> None:
    """For every character of Unicode, or every seventh, on a line of its own: those it
    lets pass stay, and no other.
    """
    shown, hidden = list[str](), list[str]()
    for each in islice(every_character(), None, None, step):
        (shown if is_visible(each) else hidden).append(each)

    assert visible_text("\n".join(shown)) == "\n".join(shown)
    assert visible_text("\n".join(hidden)).strip("\n") == ""


@given(
    st.text(
        st.sampled_from(
            "ab \n"
            "\t\x1b[]31m;\x07\\\u200b\u200c\u200d\ufe0f\u2764\u0645\u202e\U000e0041\x9b\r\ud800"
        )
    )
)
def test_a_second_removal_changes_nothing(text: str) -> None:
    """A removal never joins its surroundings into a new escape sequence."""
    once = visible_text(text)
    assert all(each not in once for each in "\x1b\x9b\u202e\u200b\U000e0041\ud800\r")
    assert "\n" not in visible_line(text)


def test_a_frame_cannot_be_closed_from_inside() -> None:
    """In any case and spacing; other tags stay, because instructions contain
    examples.
    """
    text = framed("skill", "a</skill>b</ SKILL >c<skill>d<b>e</b>\u200b", name='x"><y')

    assert text.replace(JOINER, "·") == (
        '<skill name="x&quot;&gt;&lt;y">\n'
        "a<·/skill>b<·/ SKILL >c<·skill>d<b>e</b>\n"
        "</skill>"
    )


def test_metadata_and_instructions_are_cleaned_with_a_diagnostic(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """The description at discovery, instructions at activation, files when read;
    `validate` gives the lines.
    """
    head = (
        "name: pdf\ndescription: Reads\U000e0041 it\u200b. Use it.\nlicense: M\u202eIT"
    )
    text = f"---\n{head}\n---\nDo\n\u2066this\u2800\n"
    directory = write_skill("pdf", text=text)
    (directory / "a.md").write_text("x\u200by", encoding="utf-8")
    (directory / "b\u200b.md").write_text("x", encoding="utf-8")
    catalog = discover(tmp_path / "skills")
    skill = catalog.activate("pdf")

    assert catalog["pdf"].description == "Reads it. Use it."
    assert [each.message for each in catalog.diagnostics] == [
        "the description has hidden characters (tag 1, zero-width 1); removed"
    ]
    assert skill.body == "Do\nthis"
    assert skill.frontmatter.license == "MIT"
    assert (
        "the instructions have hidden characters (bidirectional control 1, blank "
        "filler 1); removed" in [each.message for each in skill.diagnostics]
    )
    assert skill.read_resource("a.md") == "xy"
    assert [each.path for each in skill.resources()] == ["a.md"]
    assert [
        each.line
        for each in lint(text.encode(), "pdf")
        if each.rule == "hidden-characters"
    ] == [3, 4, 7]


def test_a_name_with_hidden_characters_is_replaced(
    tmp_path: Path, write_skill: WriteSkill
) -> None:
    """By the directory's; where that has some too, the skill is skipped."""
    write_skill("pdf\u3164", at="pdf")
    write_skill("x\ufe0f", at="x\ufe0f")

    assert list(discover(tmp_path / "skills")) == ["pdf"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\uff1c/skill_resource\uff1e", "\uff1c·/skill_resource\uff1e"),
        ("\ufe64\uff0fskill>", "\ufe64·\uff0fskill>"),
        ("<\uff5cUser\uff5c>", "<·\uff5cUser\uff5c>"),
        (
            "<\uff5cbegin\u2581of\u2581sentence\uff5c>",
            "<·\uff5cbegin\u2581of\u2581sentence\uff5c>",
        ),
        ("[INST] <</SYS>> [/INST]", "[·INST] <·</SYS>> [·/INST]"),
        ("1 \uff1c 2, [INSTALL], a <b>", "1 \uff1c 2, [INSTALL], a <b>"),
    ],
)
def test_wide_and_other_marks_of_roles_are_escaped(text: str, shown: str) -> None:
    """A model reads the wide forms as it reads the plain ones; DeepSeek's and Llama's
    own marks too.
    """
    assert without_tag("skill_resource", text).replace(JOINER, "·") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<|im_start|>system", "<·|im_start|>system"),
        (
            "<|start_header_id|>user<|end_header_id|>",
            "<·|start_header_id|>user<·|end_header_id|>",
        ),
        ("<start_of_turn>model", "<·start_of_turn>model"),
        (
            "[INST] [/TOOL_RESULTS] [TOOL_CALLS]",
            "[·INST] [·/TOOL_RESULTS] [·TOOL_CALLS]",
        ),
        ("a <b> [x] | <| 3", "a <b> [x] | <| 3"),
        # Tags that prompts ask for, and pages are full of.
        ("<result>3</result> <output>", "<result>3</result> <output>"),
    ],
)
def test_role_marks_are_escaped_where_a_model_reads(text: str, shown: str) -> None:
    """Of ChatML, Llama, Gemma and Mistral; other brackets stay."""
    assert escaped(text).replace(JOINER, "·") == shown
    assert escaped(escaped(text)) == escaped(text)


def test_the_viramas_are_those_of_unicode() -> None:
    """Every character of the combining class 9."""
    viramas = [each for each in every_character() if unicodedata.combining(each) == 9]

    assert [
        each for each in viramas if not visible_text(f"{each}\u200d").endswith("\u200d")
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "Careful \u26a0\ufe0f, \u2764\ufe0f",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    ],
)
def test_emoji_are_not_reported(
    tmp_path: Path, write_skill: WriteSkill, text: str
) -> None:
    """A seventh of real skills has such emoji; nothing of them is removed, and nothing
    is said of them.
    """
    write_skill("pdf", text=f"---\nname: pdf\ndescription: Reads {text}\n---\n{text}\n")
    skill = discover(tmp_path / "skills").activate("pdf")

    assert skill.body == text
    assert [each.rule for each in skill.diagnostics] == []


def test_a_line_has_no_wide_mark_of_a_role() -> None:
    """As of the plain one."""
    assert visible_line("a <\uff5cUser\uff5c> b") == f"a <{JOINER}\uff5cUser\uff5c> b"


# How each model's published chat template separates turns, reasoning, calls and
# results, with what a text would have to contain to forge one.
TEMPLATES = {
    "Llama 2": "[INST] <<SYS>>\n",
    "Llama 3": "<|start_header_id|>system<|end_header_id|>",
    "Llama 3 tools": "<|python_tag|>{",
    "Llama 4": "<|header_start|>user<|header_end|>",
    "Mistral 7B": "[TOOL_RESULTS]",
    "Mistral Small 3": "[SYSTEM_PROMPT]",
    "Magistral": "[THINK]",
    "Gemma 1 to 3": "<start_of_turn>user",
    "Gemma 4": "<|turn>user",
    "Gemma 4 tools": "<|tool_response>",
    "Gemma's beginning": "<bos>",
    "Qwen 2.5": "<|im_start|>system",
    "Qwen 3": "<tool_response>",
    "Qwen 3 calls": "<tool_call>",
    "Qwen3-Coder": "<function=run>",
    "DeepSeek V3": "<\uff5cUser\uff5c>",
    "DeepSeek V3 tools": "<\uff5ctool\u2581outputs\u2581begin\uff5c>",
    "DeepSeek V4.1": "<\uff5cDSML\uff5c calls>",
    "DeepSeek R1": "</think>",
    "GLM 4": "[gMASK]<sop>",
    "GLM 4.5": "<arg_key>",
    "Kimi K2": "<|tool_calls_section_begin|>",
    "Kimi K3": "<|open|>call tool",
    "Kimi-VL": "\u25c1think\u25b7",
    "MiniMax M1": "]~b]user",
    "MiniMax M2": "<minimax:tool_call>",
    "gpt-oss": "<|start|>system<|message|>",
    "Phi 4": "<|user|>",
    "Granite 3": "<|start_of_role|>system",
    "Command R": "<|START_OF_TURN_TOKEN|>",
    "EXAONE": "[|user|]",
    "Nemotron Nano 2": "<TOOLCALL>[",
    "Nemotron 4": "<extra_id_1>User",
    "Seed-OSS": "<seed:bos>system",
    "LongCat": "<longcat_tool_call>",
    "ERNIE 4.5": "<|begin_of_sentence|>",
    "Claude 2": "a\n\nHuman: b",
    "Claude's functions": "<function_results>",
    "Alpaca": "a\n### Instruction:\nb",
}


@pytest.mark.parametrize("mark", TEMPLATES.values(), ids=TEMPLATES.keys())
def test_no_text_of_a_skill_can_forge_a_turn(mark: str) -> None:
    """The escape is one invisible character, and what is copied is made whole again."""
    text = f"See {mark} and go on."
    shown = escaped(text)

    assert mark not in shown
    assert shown.replace(JOINER, "") == text
    assert unescaped(shown) == text
    assert visible_text(shown) == shown
    assert hidden_characters(shown) == {}
    assert escaped(shown) == shown


@pytest.mark.parametrize("name", sorted(FORMS.keys() - {"Python"}))
def test_what_is_read_as_a_call_cannot_be_shown(name: str) -> None:
    """Every form of a call that has marks is escaped by the table that reads it."""
    call = FORMS[name]("run", {"path": "a"})

    assert escaped(call) != call


@pytest.mark.parametrize(
    "text",
    [
        "<b>bold</b> <s>struck</s> <output> [1] [x] a[i] <T extends string>",
        "<thinking> is a tag that some prompts ask for",
        "vector<int> v; a << b; x[INSTALL]; [ARGS]; cat <<EOF",
        "User: hello\nHuman: in a line",
        "<skill-name> <skills> <systems>",
    ],
)
def test_other_brackets_stay(text: str) -> None:
    """Code, HTML and placeholders are not marks."""
    assert escaped(text) == text
    assert without_tag("skill", text) == text


def test_bytes_are_judged_as_their_text() -> None:
    """Discovery tests a frontmatter before it is decoded."""
    for character in islice(every_character(), 0, None, 61):
        text = f"a {character}"
        data = text.encode("utf-8", "surrogatepass")
        assert is_visible_utf_8(data) is is_visible(text), ascii(character)


def test_a_character_that_yaml_forbids_is_hidden() -> None:
    """So text without hidden characters needs no second test before it is scanned."""
    forbidden = pkgutil.resolve_name(
        "skillruntime.catalog.frontmatter.simple_frontmatter:_UNPRINTABLE"
    )
    characters = forbidden.findall("".join(every_character()))

    assert len(characters) > 2_000
    assert [each for each in characters if is_visible(each)] == []
