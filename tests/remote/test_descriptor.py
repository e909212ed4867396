"""Descriptors: the example of section 4, every fault at once, and conversion to a
contract and back.
"""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from skillruntime.errors import InvalidSkillError, SkillInputError
from skillruntime.remote import AccessPolicy, SkillDescriptor
from skillruntime.remote.descriptor import (
    AuthType,
    CapabilityType,
    ParameterDefinition,
    inputs_from_schema,
    schema_from_inputs,
)
from skillruntime.remote.descriptor_parts import fill_url

TRANSLATOR: dict[str, Any] = {
    "protocol": {
        "version": "1.0.0",
        "changelog_url": "https://skill-sharing.org/changelog",
    },
    "id": "com.example.translate-v1",
    "name": "Universal Translator",
    "version": "2.1.0",
    "capability_type": "api",
    "description": "支持 100+ 语言的高质量文本翻译服务",
    "provider": {
        "name": "Example Corp",
        "url": "https://example.com",
        "contact": "skills@example.com",
    },
    "endpoint": {
        "url": "https://api.example.com/skills/translate/invoke",
        "method": "POST",
        "content_type": "application/json",
        "status_url": "https://api.example.com/skills/translate/status/{execution_id}",
        "result_url": "https://api.example.com/skills/translate/result/{execution_id}",
        "timeout_ms": 30000,
        "retry": {"max_attempts": 3, "backoff_ms": 1000},
    },
    "inputs": [
        {
            "name": "text",
            "type": "string",
            "description": "要翻译的文本",
            "required": True,
            "schema": {"minLength": 1, "maxLength": 10000},
        },
        {
            "name": "target_language",
            "type": "string",
            "description": "目标语言代码(ISO 639-1)",
            "required": True,
        },
        {
            "name": "source_language",
            "type": "string",
            "description": "源语言代码(留空则自动检测)",
            "required": False,
            "default": "auto",
        },
    ],
    "output": {
        "content_type": "application/json",
        "schema": {
            "type": "object",
            "properties": {
                "translated_text": {"type": "string"},
                "source_language": {"type": "string"},
                "target_language": {"type": "string"},
                "confidence": {"type": "number"},
            },
        },
        "description": "翻译结果",
    },
    "auth": {
        "type": "api_key",
        "description": "通过 X-API-Key header 传递密钥",
        "header": "X-API-Key",
    },
    "access": "restricted",
    "tags": ["translation", "nlp", "multilingual"],
    "documentation_url": "https://docs.example.com/skills/translate",
    "created_at": "2025-01-15T08:00:00Z",
    "updated_at": "2025-03-20T14:30:00Z",
}


def changed(*path: str | int, to: Any) -> dict[str, Any]:
    """Return the protocol document's descriptor with one value replaced, or removed
    where *to* is ``...``.
    """
    document = copy.deepcopy(TRANSLATOR)
    place: Any = document
    for key in path[:-1]:
        place = place[key]
    if to is ...:
        del place[path[-1]]
    else:
        place[path[-1]] = to
    return document


def test_the_protocols_example_round_trips() -> None:
    """Section 4.5's descriptor is read into its types and written back as it was."""
    descriptor = SkillDescriptor.from_dict(TRANSLATOR)

    assert descriptor.to_dict() == TRANSLATOR
    assert descriptor.capability_type is CapabilityType.API
    assert descriptor.access is AccessPolicy.RESTRICTED
    assert descriptor.auth.type is AuthType.API_KEY
    assert (
        descriptor.endpoint.retry is not None
        and descriptor.endpoint.retry.max_attempts == 3
    )
    assert descriptor.line == "com.example.translate-v1@2"


@pytest.mark.parametrize(
    "auth",
    [
        {"type": "none"},
        {"type": "custom", "description": "ask us", "realm": "west"},
        {
            "type": "oauth2",
            "oauth2": {
                "authorization_url": "https://example.com/oauth/authorize",
                "token_url": "https://example.com/oauth/token",
                "scopes": {"skill:invoke": "调用技能", "skill:read": "读取技能信息"},
            },
        },
    ],
)
def test_every_way_to_authenticate_round_trips(auth: dict[str, Any]) -> None:
    """Section 4.4's two examples, and the two ways it gives no example of."""
    document = changed("auth", to=auth)

    assert SkillDescriptor.from_dict(document).to_dict() == document


def test_unknown_fields_are_kept() -> None:
    """Fields of a later version, and other people's extensions, survive reading and
    writing.
    """
    document = {
        **TRANSLATOR,
        "x-rating": 5,
        "extensions": {"cancel": True, "x-theirs": [1]},
    }

    descriptor = SkillDescriptor.from_dict(document)

    assert descriptor.extensions.cancel
    assert descriptor.to_dict() == document


def test_an_explicit_null_default_is_written_back_as_it_was() -> None:
    """Section 4.4's parameter has ``"default": null``: it is not a default, and it
    stays in the document.
    """
    document = changed("inputs", 0, "default", to=None)

    descriptor = SkillDescriptor.from_dict(document)

    assert descriptor.to_dict()["inputs"][0]["default"] is None
    assert "default" not in descriptor.inputs[0].to_schema()


@pytest.mark.parametrize(
    "name", [key for key in TRANSLATOR if key not in ("tags", "documentation_url")][:12]
)
def test_every_required_field_is_required(name: str) -> None:
    """Section 4.2 lists twelve required fields."""
    with pytest.raises(InvalidSkillError, match=name):
        SkillDescriptor.from_dict(changed(name, to=...))


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("capability_type",), "robot", "capability_type"),
        (("access",), "secret", "access"),
        (("auth", "type"), "basic", "/auth/type"),
        (("version",), "two", "no|version"),
        (("protocol", "version"), "1.0.x", "/protocol/version"),
        (("endpoint", "url"), "ftp://example.com", "/endpoint/url"),
        (("endpoint", "url"), "http://[::1/", "/endpoint/url"),
        (
            ("endpoint", "status_url"),
            "http://example.com:99999/",
            "/endpoint/status_url",
        ),
        (("endpoint", "timeout_ms"), 0, "/endpoint/timeout_ms"),
        (("endpoint", "method"), "GET", "/endpoint/method"),
        (("inputs", 0, "type"), "text", "/inputs/0/type"),
        (("inputs", 0, "schema"), {"minLength": "one"}, "/inputs/0/schema"),
        (("inputs", 1, "name"), "text", "two inputs"),
        (("output", "schema"), {"type": "nothing"}, "/output/schema"),
        (("auth",), {"type": "oauth2"}, "oauth2"),
        (("auth", "header"), "X-Key\r\nEvil: 1", "/auth/header"),
        (("id",), "a\x00b", "/id"),
        (("created_at",), "yesterday", "/created_at"),
    ],
)
def test_each_fault_is_named_by_its_place(
    path: tuple[str | int, ...], value: Any, said: str
) -> None:
    """Every fault names its location."""
    with pytest.raises(InvalidSkillError, match=said):
        SkillDescriptor.from_dict(changed(*path, to=value))


def test_all_faults_are_reported_at_once() -> None:
    """Reading collects and raises once."""
    document = changed("access", to="secret")
    document["version"] = "two"
    document["endpoint"]["timeout_ms"] = -1

    with pytest.raises(InvalidSkillError) as raised:
        SkillDescriptor.from_dict(document)

    assert raised.value.details is not None
    assert len(raised.value.details["faults"]) == 3


@pytest.mark.parametrize("document", [None, [], "text", 5, {"a": float("nan")}])
def test_a_value_that_is_not_a_descriptor_is_refused(document: Any) -> None:
    """Any value raises `InvalidSkillError` and no other exception."""
    with pytest.raises(InvalidSkillError):
        SkillDescriptor.from_dict(document)


def test_a_descriptor_is_a_contract() -> None:
    """The protocol document's inputs become a schema that accepts its own call and
    repairs or refuses others.
    """
    contract = SkillDescriptor.from_dict(TRANSLATOR).to_contract()

    accepted = contract.accept({"text": "Hello, world!", "target_language": "zh-CN"})

    assert accepted.arguments["source_language"] == "auto"
    assert contract.run == {"timeout_seconds": 60.0}
    with pytest.raises(SkillInputError):
        contract.accept({"text": "", "target_language": "de"})
    with pytest.raises(SkillInputError):
        contract.accept({"text": "hi"})


def test_a_schema_becomes_inputs_and_comes_back() -> None:
    """JSON Schema -> inputs -> JSON Schema loses nothing where inputs can say it."""
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "default": 3},
            "any": {"description": "whatever"},
        },
        "required": ["n"],
        "additionalProperties": False,
    }

    inputs, whole = inputs_from_schema(schema)

    assert whole
    assert schema_from_inputs(inputs) == schema


@pytest.mark.parametrize(
    "schema",
    [
        {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/x"}},
            "$defs": {"x": {"type": "string"}},
        },
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {
            "type": "object",
            "oneOf": [{"required": ["a"]}, {"required": ["b"]}],
            "additionalProperties": False,
        },
        True,
    ],
)
def test_a_schema_that_inputs_cannot_say_is_reported_apart(schema: Any) -> None:
    """What would be lost (references, alternatives, open objects) makes the inputs less
    than whole.
    """
    _, whole = inputs_from_schema(schema)

    assert not whole


@pytest.mark.parametrize(
    ("template", "execution_id", "url"),
    [
        ("https://a.example/s/{execution_id}", "exec-1", "https://a.example/s/exec-1"),
        (
            "https://a.example/s/{execution_id}/x",
            "exec-1",
            "https://a.example/s/exec-1/x",
        ),
        ("https://a.example/s/", "exec-1", "https://a.example/s/exec-1"),
        (
            "https://a.example/s",
            "../admin?x#y",
            "https://a.example/s/..%2Fadmin%3Fx%23y",
        ),
        ("https://a.example/s", "..", "https://a.example/s/%2E%2E"),
        ("https://a.example/s", "é", "https://a.example/s/%C3%A9"),
    ],
)
def test_an_execution_id_never_leaves_its_segment(
    template: str, execution_id: str, url: str
) -> None:
    """With ``{execution_id}`` it is a template (4.4), without it is appended (6.2), and
    a hostile id is escaped.
    """
    assert fill_url(template, execution_id) == url


def test_a_parameter_that_admits_null_keeps_its_null_default() -> None:
    """``default: null`` is a default where null is a value."""
    parameter = ParameterDefinition(
        "x", "any", default=None, schema={"type": ["string", "null"]}
    )

    assert parameter.to_schema() == {"type": ["string", "null"], "default": None}


def test_all_faults_of_an_empty_descriptor_are_named_at_once() -> None:
    """In the message, not in the details alone: whoever corrects one sees the rest."""
    with pytest.raises(InvalidSkillError) as refused:
        SkillDescriptor.from_dict({})

    missing = re.findall("'([a-z_]+)' is a required property", str(refused.value))
    assert missing == [
        "protocol",
        "id",
        "name",
        "version",
        "capability_type",
        "description",
        "provider",
        "endpoint",
        "inputs",
        "output",
        "auth",
        "access",
    ]


@pytest.mark.parametrize(
    ("kind", "default"),
    [("integer", "three"), ("string", 5), ("boolean", "no"), ("array", {})],
)
def test_a_default_of_another_type_is_named(kind: str, default: object) -> None:
    """A caller who relies on it would be refused."""
    inputs = [{"name": "n", "type": kind, "required": False, "default": default}]

    with pytest.raises(InvalidSkillError) as refused:
        SkillDescriptor.from_dict({**TRANSLATOR, "inputs": inputs})

    assert str(refused.value) == (
        f"The descriptor is invalid: the default of 'n' is not of the type {kind} - at "
        "/inputs/0/default"
    )


def test_a_default_that_a_contract_never_fills_in_is_not_announced() -> None:
    """Its server would publish a descriptor that no client reads."""
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "default": "x"}},
    }

    [parameter], is_whole = inputs_from_schema(schema)

    assert parameter.to_schema() == {"type": "integer"}
    assert not is_whole
