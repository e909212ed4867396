"""Which tool a name means: `skillruntime/contract/reading/tool_names.py`."""

from __future__ import annotations

import pytest

from skillruntime.contract.reading.tool_names import MeantName, meant_name

NAMES = [
    "k-multi__one",
    "k-script",
    "data-analysis__summary",
    "pdf__extract-form-field-info",
    "extract",
    "docx__merge",
]


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("k-multi/one", "k-multi__one"),
        ("k-multi.one", "k-multi__one"),
        ("data-analysis_summary", "data-analysis__summary"),
        ("K-Script", "k-script"),
        ("k_script", "k-script"),
        ("kScript", "k-script"),
        ("functions.k-script", "k-script"),
        ("default_api:k_script", "k-script"),
        ("pdf/extract_form_field_info", "pdf__extract-form-field-info"),
        ("functions.k-multi/one", "k-multi__one"),
    ],
)
def test_case_separators_and_a_known_prefix_are_put_right(
    sent: str, meant: str
) -> None:
    """What models change of a name without meaning another one."""
    assert meant_name(sent, NAMES).name == meant


@pytest.mark.parametrize(
    "sent",
    [
        "k-scripts",
        "one",
        "docx/extract",
        "xlsx__extract",
        "mcp__pdf__extract",
        "\u212a-script",
        "k\u2010script",
    ],
)
def test_another_name_is_not_put_right(sent: str) -> None:
    """A letter more, a prefix less, another skill's prefix, an unknown prefix, and
    letters that only look alike.
    """
    assert meant_name(sent, NAMES).name is None


def test_an_exact_name_wins() -> None:
    """Names that differ by case or separators alone are called by their exact
    spelling.
    """
    names = ["read-file", "read_file", "functions.read_file"]

    assert [meant_name(name, names).name for name in names] == names
    assert meant_name("ReadFile", names) == MeantName(
        None, ("read-file", "read_file"), is_ambiguous=True
    )


def test_a_separator_between_two_digits_counts() -> None:
    """`report_1_2` and `report_12` are two reports."""
    assert meant_name("report_12", ["report_1_2"]).name is None
    assert meant_name("Report-1-2", ["report_1_2"]).name == "report_1_2"


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        ("mcp__files__get", "get"),
        ("files.get", "get"),
        ("mcp__notion__notion.search", "notion.search"),
        ("notion.get", None),
        ("users.list", None),
    ],
)
def test_any_prefix_may_stand_before_the_name_of_a_chosen_server(
    sent: str, meant: str | None
) -> None:
    """A client names its servers as it likes; a prefix of another tool, or another
    tool's ending, is not put right.
    """
    names = ["get", "list", "user.list", "notion.search"]

    assert meant_name(sent, names, prefixes=None).name == meant


def test_a_refusal_offers_the_nearest_names() -> None:
    """Not the first ones by alphabet."""
    assert meant_name("pdf-extrat", ["a", "b", "pdf-extract"]) == MeantName(
        None, ("pdf-extract",)
    )
