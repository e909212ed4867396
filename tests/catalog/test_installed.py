"""Skills in installed packages: found by RECORD, untrusted, with the version of the distribution."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from skillruntime.catalog import Root, discover, installed_roots
from skillruntime.errors import InvalidSkillError


def install(site: Path, distribution: str, version: str, name: str, body: str = "Body.", package: str = "") -> Path:
    """Write what a wheel with one skill leaves in *site*; return the SKILL.md."""
    package = package or distribution.replace("-", "_")
    path = site / package / ".agents" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    text = f"---\nname: {name}\ndescription: Helps with {name}.\nmetadata:\n  version: 9.9.9\n---\n{body}\n"
    path.write_text(text, encoding="utf-8")
    digest = urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    record = f"{path.relative_to(site).as_posix()},sha256={digest},{len(text)}\n{info.name}/RECORD,,\n"
    (info / "RECORD").write_text(record, encoding="utf-8")
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return the directory of packages of an empty virtual environment."""
    directory = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    directory.mkdir(parents=True)
    return directory


def roots(site: Path) -> list[Root]:
    return installed_roots(environment=site.parents[2])


def test_installed_skills_are_found_with_the_version_of_their_distribution(site: Path) -> None:
    """Whatever version their frontmatter states, and never trusted."""
    install(site, "fast-api", "0.115.2", "fast-api")
    install(site, "other", "1.0", "helper", package="otherpackage")
    (site / "plain").mkdir()

    found = roots(site)
    catalog = discover(*found)

    assert [(root.scope, root.version, root.trusted) for root in found] == [
        ("fast-api", "0.115.2", False),
        ("other", "1.0", False),
    ]
    assert [(each.name, each.version, each.installed) for each in catalog.values()] == [
        ("fast-api", "0.115.2", True),
        ("helper", "1.0", True),
    ]
    assert catalog.activate("fast-api").version == "0.115.2"
    assert discover(*found)["helper"].version == "1.0"  # from the index


def test_a_changed_byte_is_refused_at_the_start_and_at_activation(site: Path) -> None:
    """The SHA-256 is the one in RECORD."""
    path = install(site, "typer", "1.0", "typer")
    catalog = discover(*roots(site))
    path.write_text(path.read_text().replace("Body", "Bodi"))

    with pytest.raises(InvalidSkillError, match="differs from the RECORD"):
        catalog.activate("typer")
    changed = discover(*roots(site))
    assert list(changed) == []
    assert [each.rule for each in changed.diagnostics] == ["record-mismatch"]


def test_a_skill_that_no_record_lists_is_not_offered(site: Path) -> None:
    """Neither a directory that no distribution owns, nor a file beside those of a wheel."""
    path = install(site, "typer", "1.0", "typer")
    extra = path.parent.parent / "extra" / "SKILL.md"
    extra.parent.mkdir()
    extra.write_text("---\nname: extra\ndescription: Extra.\n---\n")
    unowned = site / "unowned" / ".agents" / "skills" / "u" / "SKILL.md"
    unowned.parent.mkdir(parents=True)
    unowned.write_text("---\nname: u\ndescription: U.\n---\n")

    catalog = discover(*roots(site))

    assert list(catalog) == ["typer"]
    assert [(each.rule, Path(each.path).parent.name) for each in catalog.diagnostics] == [("record-mismatch", "extra")]


def test_only_the_packages_that_a_host_lists_are_searched(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By default none; in the order of the list; by any spelling of the name."""
    install(site, "one", "1", "one")
    install(site, "the-two", "2", "two")
    monkeypatch.syspath_prepend(str(site))

    assert list(discover()) == []
    assert sorted(name for name in discover(installed=True) if name in ("one", "two")) == ["one", "two"]
    assert [root.scope for root in installed_roots(["The_Two", "one", "absent"])] == ["the-two", "one"]
    assert [root.scope for root in installed_roots(["one", "ONE"])] == ["one"]
    assert list(discover(installed=["the.two"])) == list(discover(installed="the.two")) == ["two"]


def test_a_collision_is_decided_by_order_and_namespaced_by_source(site: Path, tmp_path: Path) -> None:
    """The project's own skill comes first; the version of a package does not matter."""
    installed = install(site, "fastapi", "99.0", "fastapi")
    own = tmp_path / "skills" / "fastapi" / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: fastapi\ndescription: Ours.\nversion: 1.0.0\n---\n")

    catalog = discover(tmp_path / "skills", *roots(site))
    reverse = discover(*roots(site), tmp_path / "skills")

    assert catalog["fastapi"].path == str(own)
    assert catalog["fastapi:fastapi"].path == str(installed)
    assert [each.rule for each in catalog.diagnostics] == ["name-collision"]
    assert reverse["fastapi"].path == str(installed)


def test_the_same_file_in_two_places_is_one_skill(site: Path, tmp_path: Path) -> None:
    """Copies do not collide."""
    installed = install(site, "fastapi", "99.0", "fastapi")
    own = tmp_path / "skills" / "fastapi" / "SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_bytes(installed.read_bytes())

    catalog = discover(tmp_path / "skills", *roots(site))

    assert list(catalog) == ["fastapi"]
    assert catalog.shadowed == {}
    assert catalog.diagnostics == ()


def test_an_environment_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    """A mistyped path must not look like an environment without skills."""
    with pytest.raises(FileNotFoundError, match="no virtual environment"):
        installed_roots(environment=tmp_path / "absent")
