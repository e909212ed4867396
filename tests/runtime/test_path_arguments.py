"""Arguments that are paths: `skillruntime/runtime/files/path_arguments.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import Field

from skillruntime.contract import Schema
from skillruntime.errors import SkillInputError, ToolExecutionError
from skillruntime.runtime import SkillRuntime
from skillruntime.runtime.call import WatchedWorkspace
from skillruntime.runtime.files.path_arguments import has_paths, with_resolved_paths
from tests.runtime.parts import Workspace
from tests.skill_files import made

PATH = {"type": "string", "format": "path"}


def test_a_schema_without_paths_is_known_at_once() -> None:
    """Most contracts have no path parameter; their arguments are not inspected."""
    assert has_paths({"properties": {"files": {"items": PATH}}})
    assert not has_paths({"properties": {"path": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        ({"properties": {"a": PATH}}, {"a": "x", "b": "y"}, {"a": "{}/x", "b": "y"}),
        (
            {"properties": {"a": {"items": PATH}}},
            {"a": ["x", "y"]},
            {"a": ["{}/x", "{}/y"]},
        ),
        (
            {"properties": {"a": {"prefixItems": [PATH], "items": {}}}},
            {"a": ["x", "y"]},
            {"a": ["{}/x", "y"]},
        ),
        (
            {"properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": PATH}},
            {"a": "x"},
            {"a": "{}/x"},
        ),
        (
            {"properties": {"a": {"anyOf": [PATH, {"type": "null"}]}}},
            {"a": "x"},
            {"a": "{}/x"},
        ),
        (
            {"properties": {"a": {"anyOf": [PATH, {"type": "null"}]}}},
            {"a": None},
            {"a": None},
        ),
        (
            {
                "$ref": "#/definitions/In",
                "definitions": {"In": {"properties": {"a": PATH}}},
            },
            {"a": "x"},
            {"a": "{}/x"},
        ),
        ({"if": {}, "then": {"properties": {"a": PATH}}}, {"a": "x"}, {"a": "{}/x"}),
        ({"additionalProperties": PATH}, {"z": "x"}, {"z": "{}/x"}),
        (
            {"patternProperties": {"^p": PATH}, "additionalProperties": {}},
            {"p": "x", "q": "y"},
            {"p": "{}/x", "q": "y"},
        ),
        (
            {"patternProperties": {"^t": {}}, "additionalProperties": PATH},
            {"t": "x", "q": "y"},
            {"t": "x", "q": "{}/y"},
        ),
        (
            {"dependentSchemas": {"a": {"properties": {"a": PATH}}}},
            {"a": "x"},
            {"a": "{}/x"},
        ),
        (
            {"properties": {"t": {}}, "unevaluatedProperties": PATH},
            {"t": "x", "z": "y"},
            {"t": "x", "z": "{}/y"},
        ),
        ({"properties": {"a": {"contains": PATH}}}, {"a": ["x"]}, {"a": ["{}/x"]}),
        (
            {"properties": {"a": {"unevaluatedItems": PATH}}},
            {"a": ["x"]},
            {"a": ["{}/x"]},
        ),
        (
            {
                "properties": {"a": {"$ref": "#p"}},
                "$defs": {"p": {"$anchor": "p", **PATH}},
            },
            {"a": "x"},
            {"a": "{}/x"},
        ),
        (
            {
                "properties": {"a": {"$dynamicRef": "#p"}},
                "$defs": {"p": {"$dynamicAnchor": "p", **PATH}},
            },
            {"a": "x"},
            {"a": "{}/x"},
        ),
        (
            {"properties": {"a": {"$ref": "#"}, "f": PATH}},
            {"a": {"a": {"f": "x"}}},
            {"a": {"a": {"f": "{}/x"}}},
        ),
    ],
)
def test_paths_are_found_wherever_a_schema_says_so(
    tmp_path, schema, arguments, expected
) -> None:
    """Through properties, items, references and every branch; a value that is not a
    path stays.
    """
    resolved = with_resolved_paths(
        arguments, Schema(schema), WatchedWorkspace(Workspace(tmp_path))
    )

    assert resolved == (_filled(expected, str(tmp_path)), ())


def test_a_path_is_found_as_deep_as_arguments_may_be(tmp_path: Path) -> None:
    """A tree of directories may refer to itself: no depth lets a path outside
    through.
    """
    schema = Schema({"properties": {"a": {"$ref": "#"}, "f": PATH}})
    arguments: dict[str, Any] = {"f": "/etc/passwd"}
    for _ in range(90):
        arguments = {"a": arguments}

    with pytest.raises(SkillInputError, match="outside the workspace"):
        with_resolved_paths(arguments, schema, WatchedWorkspace(Workspace(tmp_path)))


def test_arguments_are_copied_not_changed(tmp_path: Path) -> None:
    """What the model sent stays as it was; without a path it is the very same
    object.
    """
    sent = {"a": ["x"], "b": {"c": 1}}

    resolved = with_resolved_paths(
        sent,
        Schema({"properties": {"a": {"items": PATH}}}),
        WatchedWorkspace(Workspace(tmp_path)),
    )

    assert sent == {"a": ["x"], "b": {"c": 1}}
    assert resolved.arguments["b"] is sent["b"]
    without = with_resolved_paths(
        sent, Schema({"properties": {"d": PATH}}), WatchedWorkspace(Workspace(tmp_path))
    )
    assert without.arguments is sent


def test_every_path_that_leads_outside_is_named(tmp_path: Path) -> None:
    """One error per offending path, with its JSON Pointer and what would be right."""
    schema = {"properties": {"a": PATH, "b/c": {"items": PATH}}}

    with pytest.raises(SkillInputError) as caught:
        with_resolved_paths(
            {"a": "../x", "b/c": ["ok", "/etc/passwd"]},
            Schema(schema),
            WatchedWorkspace(Workspace(tmp_path)),
        )

    assert [error.details["path"] for error in caught.value.to_errors()] == [
        "/a",
        "/b~1c/1",
    ]
    assert "relative to the workspace" in caught.value.to_errors()[0].suggested_action


def _filled(value, directory: str):
    """*value* with ``{}`` replaced by *directory* in every text."""
    match value:
        case str():
            return value.replace("{}", directory)
        case list():
            return [_filled(item, directory) for item in value]
        case dict():
            return {key: _filled(item, directory) for key, item in value.items()}
    return value


@pytest.mark.parametrize(
    "schema",
    [
        {"propertyNames": PATH},
        {"propertyNames": {"$ref": "#/$defs/p"}, "$defs": {"p": PATH}},
        {"propertyNames": {"anyOf": [PATH, {"maxLength": 3}]}},
        {"allOf": [{"propertyNames": PATH}]},
        {"properties": {"files": {"propertyNames": PATH}}},
    ],
)
def test_a_name_that_is_a_path_stays_inside(
    tmp_path: Path, schema: dict[str, Any]
) -> None:
    """`propertyNames` with the format: a key out of the workspace is refused, another
    stays as it was sent.
    """
    workspace = WatchedWorkspace(Workspace(tmp_path))
    made = Schema(schema)
    assert has_paths(schema)

    def arguments(key: str) -> dict[str, Any]:
        return {"files": {key: 1}} if "properties" in schema else {key: 1}

    resolved = with_resolved_paths(arguments("a/b"), made, workspace)
    assert resolved == (arguments("a/b"), ())
    for key in ("../x", "/etc/passwd", "a/../../x", "\0"):
        with pytest.raises(SkillInputError, match="outside"):
            with_resolved_paths(arguments(key), made, workspace)


def test_the_error_of_a_file_that_is_not_there_says_where_it_was_looked_for(
    tmp_path: Path,
) -> None:
    """The directory and what is in it; only where the host set none, how the host sets
    it.
    """

    def size(path: Annotated[str, Field(json_schema_extra={"format": "path"})]) -> int:
        """Return the size of a file."""
        try:
            return Path(path).stat().st_size
        except FileNotFoundError:
            raise ToolExecutionError(f"{Path(path).name!r} does not exist") from None

    (tmp_path / "sales.csv").touch()
    given = SkillRuntime(functions=[size], workspace=tmp_path)

    assert given.call_sync("size", {"path": "sales.csv"}).data == 0
    missing = given.call_sync("size", {"path": "sale.csv"}).errors[0]
    assert missing.recoverable
    assert missing.suggested_action == (
        "'sale.csv' is not in the workspace, which has 'sales.csv'. Send "
        "the path of a file that is there, relative to the workspace, or ask the user "
        "for it"
    )
    with SkillRuntime(functions=[size]).session() as session:
        unset = session.call_sync("size", {"path": "sale.csv"}).errors[0]
        assert not unset.recoverable
        assert unset.suggested_action == (
            "'sale.csv' is not in the workspace, which "
            "is empty. Tell the user: the host sets the directory of the files with "
            "workspace="
        )


def test_a_session_works_in_the_workspace_of_its_runtime(tmp_path: Path) -> None:
    """Unless it is given another one."""
    runtime = SkillRuntime(workspace=made(tmp_path / "own"))

    assert runtime.session().workspace.directory == (tmp_path / "own").resolve()
    assert (
        runtime.session(workspace=made(tmp_path / "other")).workspace.directory
        == (tmp_path / "other").resolve()
    )
