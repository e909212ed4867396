"""Arguments that are paths: `skillruntime/runtime/path_arguments.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skillruntime.contract.schema import Schema
from skillruntime.errors import SkillInputError
from skillruntime.runtime.path_arguments import has_paths, with_resolved_paths
from skillruntime.runtime.workspace import Workspace

PATH = {"type": "string", "format": "path"}


def test_a_schema_without_paths_is_known_at_once() -> None:
    """Most contracts have no path parameter; their arguments are not inspected."""
    assert has_paths({"properties": {"files": {"items": PATH}}})
    assert not has_paths({"properties": {"path": {"type": "string"}}})


@pytest.mark.parametrize(
    ("schema", "arguments", "expected"),
    [
        ({"properties": {"a": PATH}}, {"a": "x", "b": "y"}, {"a": "{}/x", "b": "y"}),
        ({"properties": {"a": {"items": PATH}}}, {"a": ["x", "y"]}, {"a": ["{}/x", "{}/y"]}),
        ({"properties": {"a": {"prefixItems": [PATH], "items": {}}}}, {"a": ["x", "y"]}, {"a": ["{}/x", "y"]}),
        ({"properties": {"a": {"$ref": "#/$defs/p"}}, "$defs": {"p": PATH}}, {"a": "x"}, {"a": "{}/x"}),
        ({"properties": {"a": {"anyOf": [PATH, {"type": "null"}]}}}, {"a": "x"}, {"a": "{}/x"}),
        ({"properties": {"a": {"anyOf": [PATH, {"type": "null"}]}}}, {"a": None}, {"a": None}),
        ({"$ref": "#/definitions/In", "definitions": {"In": {"properties": {"a": PATH}}}}, {"a": "x"}, {"a": "{}/x"}),
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
        ({"dependentSchemas": {"a": {"properties": {"a": PATH}}}}, {"a": "x"}, {"a": "{}/x"}),
        ({"properties": {"t": {}}, "unevaluatedProperties": PATH}, {"t": "x", "z": "y"}, {"t": "x", "z": "{}/y"}),
        ({"properties": {"a": {"contains": PATH}}}, {"a": ["x"]}, {"a": ["{}/x"]}),
        ({"properties": {"a": {"unevaluatedItems": PATH}}}, {"a": ["x"]}, {"a": ["{}/x"]}),
        ({"properties": {"a": {"$ref": "#p"}}, "$defs": {"p": {"$anchor": "p", **PATH}}}, {"a": "x"}, {"a": "{}/x"}),
        (
            {"properties": {"a": {"$dynamicRef": "#p"}}, "$defs": {"p": {"$dynamicAnchor": "p", **PATH}}},
            {"a": "x"},
            {"a": "{}/x"},
        ),
        ({"properties": {"a": {"$ref": "#"}, "f": PATH}}, {"a": {"a": {"f": "x"}}}, {"a": {"a": {"f": "{}/x"}}}),
    ],
)
def test_paths_are_found_wherever_a_schema_says_so(tmp_path, schema, arguments, expected) -> None:
    """Through properties, items, references and every branch; a value that is not a path stays."""
    resolved = with_resolved_paths(arguments, Schema(schema), Workspace(tmp_path).resolve)

    assert resolved == _filled(expected, str(tmp_path))


def test_a_path_is_found_as_deep_as_arguments_may_be(tmp_path: Path) -> None:
    """A tree of directories may refer to itself: no depth lets a path outside through."""
    schema = Schema({"properties": {"a": {"$ref": "#"}, "f": PATH}})
    arguments: dict[str, Any] = {"f": "/etc/passwd"}
    for _ in range(90):
        arguments = {"a": arguments}

    with pytest.raises(SkillInputError, match="outside the workspace"):
        with_resolved_paths(arguments, schema, Workspace(tmp_path).resolve)


def test_arguments_are_copied_not_changed(tmp_path: Path) -> None:
    """What the model sent stays as it was; without a path it is the very same object."""
    sent = {"a": ["x"], "b": {"c": 1}}

    resolved = with_resolved_paths(sent, Schema({"properties": {"a": {"items": PATH}}}), Workspace(tmp_path).resolve)

    assert sent == {"a": ["x"], "b": {"c": 1}}
    assert resolved["b"] is sent["b"]
    assert with_resolved_paths(sent, Schema({"properties": {"d": PATH}}), Workspace(tmp_path).resolve) is sent


def test_every_path_that_leads_outside_is_named(tmp_path: Path) -> None:
    """One error per offending path, with its JSON Pointer and what would be right."""
    schema = {"properties": {"a": PATH, "b/c": {"items": PATH}}}

    with pytest.raises(SkillInputError) as caught:
        with_resolved_paths({"a": "../x", "b/c": ["ok", "/etc/passwd"]}, Schema(schema), Workspace(tmp_path).resolve)

    assert [error.details["path"] for error in caught.value.to_errors()] == ["/a", "/b~1c/1"]
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
def test_a_name_that_is_a_path_stays_inside(tmp_path: Path, schema: dict[str, Any]) -> None:
    """`propertyNames` with the format: a key out of the workspace is refused, another stays as it was sent."""
    workspace = Workspace(tmp_path)
    made = Schema(schema)
    assert has_paths(schema)

    def arguments(key: str) -> dict[str, Any]:
        return {"files": {key: 1}} if "properties" in schema else {key: 1}

    assert with_resolved_paths(arguments("a/b"), made, workspace.resolve) == arguments("a/b")
    for key in ("../x", "/etc/passwd", "a/../../x", "\0"):
        with pytest.raises(SkillInputError, match="outside"):
            with_resolved_paths(arguments(key), made, workspace.resolve)
