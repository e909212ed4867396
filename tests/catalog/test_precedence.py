"""Which skill a name refers to if several have it: versions side by side, ranges,
collisions, views.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from skillruntime.catalog import Root, discover
from skillruntime.errors import SkillNotFoundError

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes a skill of some version at a place below
    ``tmp_path``.
    """

    def write_skill(
        at: str,
        version: str | None = None,
        *,
        name: str = "digest",
        contract: str | None = None,
        extra: str = "",
    ) -> Path:
        directory = tmp_path / at
        directory.mkdir(parents=True)
        stated = f'metadata:\n  version: "{version}"\n' if version else ""
        text = (
            "---\n"
            f"name: {name}\n"
            f"description: From {at}.\n"
            f"{stated}{extra}---\n"
            f"Body of {at}.\n"
        )
        (directory / "SKILL.md").write_text(text)
        if contract:
            document = {"version": contract, "input": {"type": "object"}}
            (directory / "contract.json").write_text(json.dumps(document))
        return directory

    return write_skill


def test_versions_are_side_by_side_and_the_newest_has_the_name(
    tmp_path: Path, write: Write
) -> None:
    """In one root: 1.10 is newer than 1.9, whichever directory comes first; nothing
    collides.
    """
    write("skills/digest", "1.9.0")
    write("skills/digest-new", "1.10.0")
    write("skills/digest-old", "1.2.0")

    catalog = discover(tmp_path / "skills")

    assert list(catalog) == ["digest"]
    assert catalog["digest"].version == "1.10.0"
    assert [each.name for each in catalog.versions("digest")] == [
        "digest",
        "digest@1.9.0",
        "digest@1.2.0",
    ]
    assert [
        each.rule for each in catalog.diagnostics if each.rule == "name-collision"
    ] == []


@pytest.mark.parametrize(
    ("asked", "name", "version"),
    [
        ("digest", "digest", "2.1.0"),
        ("digest@^1", "digest@1.5.0", "1.5.0"),
        ("digest@1.x", "digest@1.5.0", "1.5.0"),
        ("digest@1.2.0", "digest@1.2.0", "1.2.0"),
        ("digest@~1.2", "digest@1.2.0", "1.2.0"),
        ("digest@>=1.0.0,<2.0.0", "digest@1.5.0", "1.5.0"),
        ("digest@^1 || ^2", "digest", "2.1.0"),
        ("digest@2.1.0", "digest", "2.1.0"),
        ("digest@*", "digest", "2.1.0"),
        ("digest@>=3.0.0-rc.1", "digest@3.0.0-rc.1", "3.0.0-rc.1"),
    ],
)
def test_a_range_chooses_the_newest_that_it_admits(
    tmp_path: Path, write: Write, asked: str, name: str, version: str
) -> None:
    """Under different roots as well; a prerelease has not the plain name, and only a
    range that names it admits it.
    """
    write("one/digest", "1.2.0")
    write("two/digest", "2.1.0")
    write("three/digest", "1.5.0")
    write("four/digest", "3.0.0-rc.1")
    catalog = discover(*(tmp_path / root for root in ("one", "two", "three", "four")))

    skill = catalog.activate(asked)

    assert (skill.name, skill.version) == (name, version)
    assert catalog[asked] == skill.metadata
    assert asked in catalog


@pytest.mark.parametrize(
    "asked",
    ["digest@^7", "digest@latest", "digest@", "digest@1.2.0@^1", "digest@^7/tool"],
)
def test_an_unmet_range_says_which_versions_there_are(
    tmp_path: Path, write: Write, asked: str
) -> None:
    """SKILL_NOT_FOUND with names that work, the newest first."""
    write("skills/digest", "1.2.0")
    write("skills/new", "2.0.0")
    catalog = discover(tmp_path / "skills")

    with pytest.raises(SkillNotFoundError) as caught:
        catalog.contract(asked)

    if asked.count("@") == 1:
        assert "available: 2.0.0, 1.2.0" in str(caught.value)
        assert caught.value.suggested_action == "Use one of: digest@2.0.0, digest@1.2.0"
    assert asked.partition("/")[0] not in catalog


def test_a_range_for_an_unknown_skill_suggests_names(
    tmp_path: Path, write: Write
) -> None:
    """As for any unknown name."""
    write("skills/digest", "1.2.0")

    with pytest.raises(
        SkillNotFoundError, match=r"no skill named 'digset@\^1'"
    ) as caught:
        discover(tmp_path / "skills").activate("digset@^1")

    assert caught.value.suggested_action == "Use one of: digest"


def test_of_equal_versions_the_first_root_wins(tmp_path: Path, write: Write) -> None:
    """One diagnostic and a qualified name, next to the versions that differ; build
    metadata makes no difference.
    """
    write("one/digest", "1.0.0")
    write("two/digest", "2.0.0")
    write("three/digest", "1.0.0+build.7")
    write("four/digest", "v2")
    roots = [
        Root(str(tmp_path / name), scope=name)
        for name in ("one", "two", "three", "four")
    ]

    catalog = discover(*roots)

    assert catalog["digest"].path == str(tmp_path / "two/digest/SKILL.md")
    assert [each.name for each in catalog.versions("digest")] == [
        "digest",
        "digest@1.0.0",
    ]
    assert list(catalog) == ["digest", "four:digest", "three:digest"]
    collisions = {
        each.path: each.message
        for each in catalog.diagnostics
        if each.rule == "name-collision"
    }
    assert set(collisions) == {
        str(tmp_path / name / "digest/SKILL.md") for name in ("three", "four")
    }
    assert (
        str(tmp_path / "one/digest/SKILL.md")
        in collisions[str(tmp_path / "three/digest/SKILL.md")]
    )
    assert catalog.activate("digest@^1").metadata.path == str(
        tmp_path / "one/digest/SKILL.md"
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [(None, "2.0.0"), ("1.0.0", None), (None, None), ("what?", "1.0.0")],
)
def test_without_a_version_the_first_root_wins(
    tmp_path: Path, write: Write, first: str | None, second: str | None
) -> None:
    """It is unknown which is newer: a collision, as between equal versions."""
    write("one/digest", first)
    write("two/digest", second)

    catalog = discover(tmp_path / "one", tmp_path / "two")

    assert catalog["digest"].path == str(tmp_path / "one/digest/SKILL.md")
    assert list(catalog) == ["digest", "two:digest"]
    assert [each.rule for each in catalog.diagnostics] == ["name-collision"]


def test_a_newer_untrusted_version_does_not_take_a_trusted_name(
    tmp_path: Path, write: Write
) -> None:
    """It is available by its version; a newer trusted one takes the name."""
    write("own/digest", "1.0.0")
    write("strange/digest", "99.0.0")
    write("mine/digest", "1.1.0")
    own, strange = (
        Root(str(tmp_path / "own"), trusted=True),
        Root(str(tmp_path / "strange")),
    )

    catalog = discover(own, strange, Root(str(tmp_path / "mine"), trusted=True))

    assert catalog["digest"].version == "1.1.0"
    assert catalog.activate("digest@>=1").version == "1.1.0"
    assert catalog.activate("digest@99.0.0").trusted is False
    assert discover(strange, own)["digest"].version == "99.0.0"


def test_a_range_is_compared_with_the_version_of_the_contract(
    tmp_path: Path, write: Write
) -> None:
    """It has precedence over the frontmatter's; which skill gets the plain name depends
    on the frontmatter.
    """
    write("one/digest", "2.0.0", contract="3.1.0")
    write("two/digest", "1.0.0")
    write("three/digest", None, contract="1.4.0")

    catalog = discover(*(tmp_path / root for root in ("one", "two", "three")))

    assert catalog["digest"].version == "2.0.0"
    assert catalog.contract("digest@^3")[1].version == "3.1.0"
    assert catalog.contract("digest@^1")[1].version == "1.4.0"
    with pytest.raises(SkillNotFoundError, match=r"3\.1\.0, 1\.4\.0, 1\.0\.0"):
        catalog.activate("digest@^2")
    assert [each.rule for each in catalog.activate("digest").diagnostics] == [
        "version-disagreement"
    ]


def test_a_skill_alone_is_chosen_by_range_too(tmp_path: Path, write: Write) -> None:
    """By its contract's version if the frontmatter has none; without any version, the
    error says so.
    """
    write("skills/digest", contract="1.4.0")
    write("skills/plain", name="plain")
    catalog = discover(tmp_path / "skills")

    assert catalog.activate("digest@^1").name == "digest"
    with pytest.raises(SkillNotFoundError, match="does not state a version") as caught:
        catalog.activate("plain@^1")
    assert caught.value.suggested_action == "Use 'plain' without a version range"


def test_tools_of_a_version_are_called_by_its_name(
    tmp_path: Path, write: Write
) -> None:
    """``digest@1.2.0/tool``, also after the range chose it."""
    write("skills/new", "2.0.0")
    directory = write("skills/digest", "1.2.0")
    (directory / "contracts").mkdir()
    (directory / "contracts" / "count.json").write_text('{"input": {"type": "object"}}')
    catalog = discover(tmp_path / "skills")

    skill, contract = catalog.contract("digest@^1/count")

    assert contract.name == "digest@1.2.0/count"
    assert list(skill.contracts) == ["digest@1.2.0/count"]
    assert catalog.contract("digest@1.2.0/count")[1].to_dict() == contract.to_dict()


def test_a_hidden_version_does_not_exist_for_models(
    tmp_path: Path, write: Write
) -> None:
    """A model sees neither it nor a replacement of the same name; an error does not
    name it.
    """
    write("skills/digest", "2.0.0")
    write("skills/middle", "1.5.0", extra="disable-model-invocation: true\n")
    write("skills/old", "1.2.0")
    write(
        "skills/secret",
        "1.0.0",
        name="secret",
        extra="disable-model-invocation: true\n",
    )
    catalog = discover(tmp_path / "skills")
    models = catalog.for_model()

    assert catalog["digest@^1"].model_invocable is False
    assert [each.version for each in models.versions("digest")] == ["2.0.0", "1.2.0"]
    assert models.activate("digest@1.2.0").version == "1.2.0"
    with pytest.raises(SkillNotFoundError) as caught:
        models.activate("digest@1.5.0")
    assert "1.5.0" not in str(caught.value).replace("satisfies '1.5.0'", "") + str(
        caught.value.suggested_action
    )
    with pytest.raises(
        SkillNotFoundError, match="There is no skill named 'secret@\\^1'"
    ):
        models.activate("secret@^1")
    assert "digest@^1" not in models
    assert models.refresh() is models


def test_a_view_can_pin_an_old_version(tmp_path: Path, write: Write) -> None:
    """Of the versions that are selected the newest has the name; the others do not
    exist there.
    """
    write("skills/digest", "2.0.0")
    write("skills/middle", "1.5.0")
    write("skills/old", "1.2.0")
    catalog = discover(tmp_path / "skills")

    held = catalog.select(where=lambda skill: (skill.version or "").startswith("1."))

    assert held["digest"].version == "1.5.0"
    assert held.activate("digest@<1.5").name == "digest@1.2.0"
    assert "digest@^2" not in held
    assert held.for_model().activate("digest").body == "Body of skills/middle."
    assert "From skills/middle." in held.to_prompt()
    write("skills/newer", "1.7.0")
    assert held.refresh()["digest"].version == "1.7.0"


def test_a_view_of_a_name_has_all_its_versions(tmp_path: Path, write: Write) -> None:
    """What is selected or left out by its plain name is so in every version; a
    predicate is asked about each.
    """
    for name, version in (("digest", "2.0.0"), ("middle", "1.5.0"), ("old", "1.2.0")):
        write(f"skills/{name}", version)
    write("skills/other", name="other")
    catalog = discover(tmp_path / "skills")

    selected = catalog.select("digest")
    pinned = catalog.select(where=lambda skill: skill.version != "1.5.0")

    assert list(selected.every_version()) == ["digest", "digest@1.2.0", "digest@1.5.0"]
    assert selected.activate("digest@^1").version == "1.5.0"
    assert list(catalog.select(exclude="digest").every_version()) == ["other"]
    assert [each.version for each in pinned.versions("digest")] == ["2.0.0", "1.2.0"]
    with pytest.raises(SkillNotFoundError):
        pinned.activate("digest@1.5.0")


def test_a_skill_that_is_called_like_a_version_keeps_its_name(
    tmp_path: Path, write: Write
) -> None:
    """Names of that form break the format, but they are loaded."""
    write("skills/a", "1.0.0")
    write("skills/b", "2.0.0")
    write("skills/c", name="digest@1.0.0")

    catalog = discover(tmp_path / "skills")

    assert catalog["digest@1.0.0"].description == "From skills/c."
    (other,) = {*catalog} - {"digest", "digest@1.0.0"}
    assert other.endswith(":digest")
    assert catalog[other].description == "From skills/a."


def test_the_order_of_roots_does_not_matter_where_versions_differ(
    tmp_path: Path, write: Write
) -> None:
    """Among equally trusted roots."""
    for version in ("1.0.0", "2.0.0", "2.0.0-rc.1"):
        write(f"{version}/digest", version)

    for order in itertools.permutations(("1.0.0", "2.0.0", "2.0.0-rc.1")):
        catalog = discover(*(tmp_path / root for root in order))
        assert catalog["digest"].version == "2.0.0"
        assert sorted(each.version or "" for each in catalog.versions("digest")) == [
            "1.0.0",
            "2.0.0",
            "2.0.0-rc.1",
        ]
        assert catalog.diagnostics == ()
