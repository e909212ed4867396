"""Skills in installed packages: found by RECORD, untrusted, with the version of the
distribution.
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from skillruntime.catalog import Root, discover, installed_roots
from skillruntime.errors import InvalidSkillError


def install(
    site: Path,
    distribution: str,
    version: str,
    name: str,
    body: str = "Body.",
    package: str = "",
) -> Path:
    """Write what a wheel with one skill leaves in *site*; return the SKILL.md."""
    package = package or distribution.replace("-", "_")
    path = site / package / ".agents" / "skills" / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    text = (
        "---\n"
        f"name: {name}\n"
        f"description: Helps with {name}.\n"
        "metadata:\n"
        "  version: 9.9.9\n"
        "---\n"
        f"{body}\n"
    )
    path.write_text(text, encoding="utf-8")
    digest = (
        urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
    )
    info = site / f"{distribution.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    record = (
        f"{path.relative_to(site).as_posix()},sha256={digest},{len(text)}\n"
        f"{info.name}/RECORD,,\n"
    )
    (info / "RECORD").write_text(record, encoding="utf-8")
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
    )
    return path


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return the directory of packages of an empty virtual environment."""
    directory = tmp_path / "venv" / "lib" / "python3.11" / "site-packages"
    directory.mkdir(parents=True)
    return directory


def roots(site: Path) -> list[Root]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.path", [str(site)])
        return installed_roots()


def test_installed_skills_are_found_with_the_version_of_their_distribution(
    site: Path,
) -> None:
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
    """Neither a directory that no distribution owns, nor a file beside those of a
    wheel.
    """
    path = install(site, "typer", "1.0", "typer")
    extra = path.parent.parent / "extra" / "SKILL.md"
    extra.parent.mkdir()
    extra.write_text("---\nname: extra\ndescription: Extra.\n---\n")
    unowned = site / "unowned" / ".agents" / "skills" / "u" / "SKILL.md"
    unowned.parent.mkdir(parents=True)
    unowned.write_text("---\nname: u\ndescription: U.\n---\n")

    catalog = discover(*roots(site))

    assert list(catalog) == ["typer"]
    assert [
        (each.rule, Path(each.path).parent.name) for each in catalog.diagnostics
    ] == [("record-mismatch", "extra")]


def test_only_the_packages_that_a_host_lists_are_searched(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default none; in the order of the list; by any spelling of the name."""
    install(site, "one", "1", "one")
    install(site, "the-two", "2", "two")
    monkeypatch.syspath_prepend(str(site))

    assert list(discover()) == []
    assert sorted(
        name for name in discover(installed=True) if name in ("one", "two")
    ) == ["one", "two"]
    assert [
        root.scope
        for root in installed_roots(["The_Two", "one", "absent"], missing_ok=True)
    ] == ["the-two", "one"]
    assert [root.scope for root in installed_roots(["one", "ONE"])] == ["one"]
    assert (
        list(discover(installed=["the.two"]))
        == list(discover(installed="the.two"))
        == ["two"]
    )


def test_a_collision_is_decided_by_order_and_namespaced_by_source(
    site: Path, tmp_path: Path
) -> None:
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
    assert catalog.diagnostics == ()


def test_a_mistyped_package_is_an_error_with_the_close_names(
    site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A package without skills says so; with `missing_ok` both are left out."""
    install(site, "fast-api", "1", "fastapi")
    (site / "plainly-1.0.dist-info").mkdir()
    (site / "plainly-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: plainly\nVersion: 1.0\n"
    )
    monkeypatch.setattr("sys.path", [str(site)])

    with pytest.raises(
        FileNotFoundError,
        match=r"No installed package 'fast_apo' has skills .* did you mean fast-api\?",
    ):
        discover(installed=["fast_apo"])
    with pytest.raises(
        FileNotFoundError,
        match=r"'Plainly' has skills in .agents/skills in its RECORD; install it",
    ):
        discover(installed="Plainly")
    assert list(discover(installed=["zzz", "fast.api"], missing_ok=True)) == ["fastapi"]


def test_a_distribution_with_two_packages_has_the_skills_of_both(site: Path) -> None:
    """Each is checked against the RECORD of the one distribution."""
    install(site, "tools", "1", "first", package="tools")
    second = site / "tools_extra" / ".agents" / "skills" / "second" / "SKILL.md"
    second.parent.mkdir(parents=True)
    second.write_text("---\nname: second\ndescription: Second.\n---\n")
    digest = (
        urlsafe_b64encode(hashlib.sha256(second.read_bytes()).digest())
        .rstrip(b"=")
        .decode()
    )
    record = site / "tools-1.dist-info" / "RECORD"
    record.write_text(
        record.read_text()
        + f"{second.relative_to(site).as_posix()},sha256={digest},9\n"
    )

    catalog = discover(*roots(site))

    assert sorted(catalog) == ["first", "second"]
    assert [catalog.activate(name).version for name in sorted(catalog)] == ["1", "1"]


@pytest.mark.parametrize(
    "damage", ["absent", "empty", "editable", "directory", "no digest", "md5"]
)
def test_without_a_usable_record_no_skill_is_offered(site: Path, damage: str) -> None:
    """An editable install has a RECORD without the files; a system's package has
    none.
    """
    path = install(site, "typer", "1.0", "typer")
    record = site / "typer-1.0.dist-info" / "RECORD"
    text = record.read_text()
    record.unlink()
    if damage == "directory":
        record.mkdir()
    elif damage != "absent":
        contents = {
            "empty": "",
            "editable": "__editable__.typer-1.0.pth,sha256=x,1\n",
            "no digest": f"{path.relative_to(site).as_posix()},,\n",
            "md5": text.replace("sha256=", "md5="),
        }
        record.write_text(contents[damage])

    assert roots(site) == []


def test_zip_files_and_paths_of_pth_files_are_searched_as_python_imports(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zip file on the path has no directory; what a .pth file of an editable install
    adds has no RECORD.
    """
    install(site, "typer", "1.0", "typer")
    source = tmp_path / "source"
    skill = source / "mine" / ".agents" / "skills" / "mine" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: mine\ndescription: Mine.\n---\n")
    (tmp_path / "packages.zip").write_bytes(b"PK\5\6" + bytes(18))
    monkeypatch.setattr(
        "sys.path",
        [str(tmp_path / "packages.zip"), str(source), "", "/no/such", str(site)],
    )

    assert [root.scope for root in installed_roots()] == ["typer"]


def test_a_name_that_looks_like_a_namespace_hides_nothing(
    site: Path, tmp_path: Path
) -> None:
    """A project's skill may be called `fastapi:fastapi`; the package's one is then
    reported, and not mixed up.
    """
    installed = install(site, "fastapi", "1.0", "fastapi")
    for number, name in enumerate(("fastapi", "fastapi:fastapi")):
        own = tmp_path / "skills" / f"s{number}" / "SKILL.md"
        own.parent.mkdir(parents=True)
        own.write_text(f"---\nname: {name}\ndescription: Ours {number}.\n---\n")

    catalog = discover(tmp_path / "skills", *roots(site))

    assert catalog["fastapi"].description == "Ours 0."
    assert catalog["fastapi:fastapi"].description == "Ours 1."
    assert any(
        str(installed) in each.message or each.path == str(installed)
        for each in catalog.diagnostics
    )


def recorded(site: Path, path: Path, algorithm: str = "sha256") -> str:
    """Return the line of *path* for a RECORD in *site*."""
    digest = (
        urlsafe_b64encode(hashlib.new(algorithm, path.read_bytes()).digest())
        .rstrip(b"=")
        .decode()
    )
    return f"{path.relative_to(site).as_posix()},{algorithm}={digest},{path.stat().st_size}"


def test_a_changed_byte_beside_the_skill_is_refused_when_it_is_read(site: Path) -> None:
    """And a file that no RECORD lists; what is as it was installed can be read."""
    skill_file = install(site, "typer", "1.0", "typer")
    beside = [
        skill_file.parent / "references" / name
        for name in ("one.md", "two.md", "three.md")
    ]
    beside[0].parent.mkdir()
    for path in beside:
        path.write_text("As it was installed.")
    record = site / "typer-1.0.dist-info" / "RECORD"
    lines = [recorded(site, beside[0]), recorded(site, beside[1], "sha512")]
    record.write_text(record.read_text() + "\n".join(lines))
    skill = discover(*roots(site), use_index=False).activate("typer")

    assert skill.read_resource("references/one.md") == "As it was installed."
    assert skill.read_resource("references/two.md") == "As it was installed."
    beside[0].write_text("As it was InStalled.")
    for name in ("references/one.md", "references/three.md"):
        with pytest.raises(
            InvalidSkillError,
            match="differs from the file that was locked or installed",
        ):
            skill.read_resource(name)


def test_a_script_of_a_package_that_was_changed_is_not_a_tool(site: Path) -> None:
    """A contract is only derived from what was installed."""
    skill_file = install(site, "typer", "1.0", "typer")
    script = skill_file.parent / "scripts" / "add.py"
    script.parent.mkdir()
    script.write_text("import argparse\nargparse.ArgumentParser().parse_args()\n")
    record = site / "typer-1.0.dist-info" / "RECORD"
    record.write_text(record.read_text() + recorded(site, script))

    assert list(
        discover(*roots(site), use_index=False).activate("typer").contracts
    ) == ["typer/add"]
    script.write_text(script.read_text() + "print('changed')\n")
    assert (
        list(discover(*roots(site), use_index=False).activate("typer").contracts) == []
    )


@pytest.mark.parametrize("form", ["quoted", "sha512", "padded"])
def test_a_record_is_read_in_every_form_that_installers_write(
    site: Path, form: str
) -> None:
    """Quoted fields, a digest better than SHA-256 (PEP 427), and one that is padded."""
    path = install(site, "typer", "1.0", "typer")
    line = recorded(site, path)
    where, digest, size = line.split(",")
    forms = {
        "quoted": f'"{where}","{digest}","{size}"\r\n',
        "sha512": recorded(site, path, "sha512"),
        "padded": f"{where},{digest}=,{size}",
    }
    (site / "typer-1.0.dist-info" / "RECORD").write_text(forms[form], encoding="utf-8")

    assert list(discover(*roots(site), use_index=False)) == ["typer"]
