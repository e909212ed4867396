"""A skill's descriptor: what its provider offers and how it is called (descriptor
document 4).

JSON <-> `SkillDescriptor` <-> `Contract`, without I/O. Reading collects every fault and
raises once; fields that the protocol documents do not name are kept, so that writing
gives back what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from skillruntime.catalog.contracts.visible_contract import visible_document
from skillruntime.contract.contract import Contract
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import find_fault
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.versions import Version
from skillruntime.errors import InvalidSkillError
from skillruntime.remote.descriptor_parts import (
    AccessPolicy,
    AuthConfig,
    AuthType,
    CapabilityType,
    Extensions,
    InvocationEndpoint,
    OAuth2Config,
    OutputDefinition,
    ParameterDefinition,
    ProtocolVersion,
    Provider,
    RetryPolicy,
    is_address,
)
from skillruntime.remote.descriptor_schema import DESCRIPTOR_SCHEMA
from skillruntime.remote.json_form import ABSENT, read, write

__all__ = [
    "AccessPolicy",
    "AuthConfig",
    "AuthType",
    "CapabilityType",
    "Extensions",
    "InvocationEndpoint",
    "OAuth2Config",
    "OutputDefinition",
    "ParameterDefinition",
    "Provider",
    "RetryPolicy",
    "SkillDescriptor",
]


# A broken one is found when the descriptor is read, and not at the first call that
# would use it.
_URLS = (
    *(("endpoint", name) for name in ("url", "status_url", "result_url")),
    *(("auth", "oauth2", name) for name in ("token_url", "authorization_url")),
    ("extensions", "executions_url"),
    *(("protocol", "changelog_url"), ("provider", "url"), ("documentation_url",)),
)
_WAY = 30.0  # seconds for the way, and for waiting until it runs


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    """The whole descriptor (4.2).

    >>> descriptor = SkillDescriptor(id="com.example.echo", name="Echo", version="1.2.0", description="Says it again",
    ...     provider=Provider("Example"), endpoint=InvocationEndpoint("https://api.example.com/echo/invoke"),
    ...     inputs=(ParameterDefinition("text", required=True),))
    >>> SkillDescriptor.from_dict(descriptor.to_dict()) == descriptor
    True
    >>> descriptor.to_contract().accept({"text": "hi"}).arguments
    {'text': 'hi'}
    """

    id: str
    name: str
    version: str
    description: str
    provider: Provider
    endpoint: InvocationEndpoint
    capability_type: CapabilityType = CapabilityType.API
    inputs: tuple[ParameterDefinition, ...] = ()
    output: OutputDefinition = field(default_factory=OutputDefinition)
    auth: AuthConfig = field(default_factory=AuthConfig)
    access: AccessPolicy = AccessPolicy.PUBLIC
    protocol: ProtocolVersion = field(default_factory=ProtocolVersion)
    tags: tuple[str, ...] = ()
    documentation_url: str | None = None
    created_at: str | None = None
    updated_at: str | None = None
    extensions: Extensions = field(default_factory=Extensions)
    more: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, document: Any) -> SkillDescriptor:
        """Return the descriptor that *document* writes.

        Raises:
            InvalidSkillError: it is not a descriptor; ``details["faults"]`` lists
                everything that is wrong.
        """
        faults = find_faults(document)
        if faults:
            raise InvalidSkillError(
                f"The descriptor is invalid: {faults[0]}", details={"faults": faults}
            )
        return read(cls, document)

    def to_dict(self) -> dict[str, Any]:
        """Return the descriptor as a JSON object; what has no value is left out."""
        return write(self)

    @property
    def line(self) -> str:
        """The skill's id with its MAJOR version: what an execution that began belongs
        to.

        >>> example = {"provider": Provider("E"), "endpoint": InvocationEndpoint("https://e.example/invoke")}
        >>> SkillDescriptor("com.example.t-v1", "T", "2.1.0", "", **example).line
        'com.example.t-v1@2'
        """
        return f"{self.id}@{Version.parse(self.version).major}"

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all inputs: the extension's where there is one,
        else made of ``inputs``.
        """
        # `inputs` (4.4) has no place for rules between parameters; a contract that has
        # some is announced whole.
        if self.extensions.input_schema is not None:
            return dict(self.extensions.input_schema)
        return schema_from_inputs(self.inputs)

    def to_contract(self, name: str = "") -> Contract:
        """Return what the descriptor promises, as a contract under *name* or else the
        descriptor's id.

        Its timeout is the endpoint's and half a minute: that clock starts when the
        skill runs, not when it is sent.
        """
        document: dict[str, Any] = {
            "name": name or self.id,
            "description": self.description,
            "version": self.version,
            "input": self.input_schema(),
        }
        if self.output.schema is not None:
            document["output"] = self.output.schema
        if self.extensions.annotations:
            document["annotations"] = dict(self.extensions.annotations)
        # A client that waited just as long as the skill may run would give up a moment
        # before the answer.
        if self.endpoint.timeout_ms is not None:
            document["run"] = {
                "timeout_seconds": self.endpoint.timeout_ms / 1000 + _WAY
            }
        return Contract.from_dict(
            visible_document(document, one_line=False), name=name or self.id
        )


def schema_from_inputs(inputs: tuple[ParameterDefinition, ...]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: parameter.to_schema() for parameter in inputs},
        "additionalProperties": False,
    }
    required = [parameter.name for parameter in inputs if parameter.required]
    return {**schema, "required": required} if required else schema


def inputs_from_schema(
    schema: Mapping[str, Any] | bool,
) -> tuple[tuple[ParameterDefinition, ...], bool]:
    """Return the parameters that *schema* describes, and whether they say all that it
    says.

    >>> inputs, whole = inputs_from_schema({"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}},
    ...     "required": ["n"], "additionalProperties": False})
    >>> inputs[0].to_schema(), inputs[0].required, whole
    ({'type': 'integer', 'minimum': 1}, True, True)
    """
    if isinstance(schema, bool):
        return (), False
    properties = schema.get("properties")
    required = schema.get("required")
    listed = required if isinstance(required, list) else []
    inputs = tuple(
        _parameter(name, part if isinstance(part, Mapping) else {}, name in listed)
        for name, part in (
            properties if isinstance(properties, Mapping) else {}
        ).items()
    )
    # They say nothing about which values are valid (JSON Schema 2020-12, core 8 and
    # validation 9).
    ignored = {"$schema", "title", "description", "$id", "$comment", "examples"}
    plain = {key: value for key, value in schema.items() if key not in ignored}
    again = schema_from_inputs(inputs)
    # The order of `required` means nothing (validation, 6.5.3), and Python compares
    # lists by it.
    again["required"] = sorted(again.get("required", []))
    return inputs, {
        "required": [],
        **plain,
        **({"required": sorted(listed)} if listed else {}),
    } == again


def find_faults(document: Any) -> list[str]:
    """Return everything that is wrong with a descriptor's document, in sentences;
    nothing if it is one.
    """
    # NaN, keys that are not texts, a depth that would break the validator: first what
    # no JSON text can hold.
    fault = find_fault(document)
    if fault:
        return [f"it is not JSON: {fault}"]
    found = [error.message for error in explain(_form().violations(document))]
    if not isinstance(document, Mapping):
        return found
    # SemVer forbids what a readable pattern lets through (leading zeros, empty
    # identifiers): its parser decides.
    protocol = document.get("protocol")
    stated = protocol.get("version") if isinstance(protocol, Mapping) else None
    for where, version in (
        ("/version", document.get("version")),
        ("/protocol/version", stated),
    ):
        if isinstance(version, str):
            try:
                Version.parse(version)
            except ValueError as error:
                found.append(f"{error} - at {where}")
    found += [
        f"it is not a URL - at /{'/'.join(place)}"
        for place in _URLS
        if _is_broken_url(_at(document, place))
    ]
    # uniqueItems compares whole items: two of one name and different types would pass.
    inputs = document.get("inputs")
    names = (
        [str(item.get("name")) for item in inputs if isinstance(item, Mapping)]
        if isinstance(inputs, list)
        else []
    )
    repeated = {name for name in names if names.count(name) > 1}
    found += [
        f"two inputs are named {name!r} - at /inputs" for name in sorted(repeated)
    ]
    # Only where the form is right are the schemas where the form says.
    return found or _schema_faults(document)


@cache
def _form() -> Schema:
    return Schema(DESCRIPTOR_SCHEMA, where="descriptor")


def _schema_faults(document: Mapping[str, Any]) -> list[str]:
    """Compile each schema of a valid document, to be sure that values can be validated
    against it.
    """
    schemas = [
        (f"/inputs/{index}/schema", item.get("schema"))
        for index, item in enumerate(document["inputs"])
    ]
    schemas.append(("/output/schema", document["output"].get("schema")))
    schemas.append(
        (
            "/extensions/input_schema",
            (document.get("extensions") or {}).get("input_schema"),
        )
    )
    found = []
    for where, schema in schemas:
        if schema is not None:
            try:
                Schema(schema, where=where)
            except InvalidSkillError as error:
                found.append(str(error))
    return found


def _at(document: Any, place: tuple[str, ...]) -> Any:
    for name in place:
        document = document.get(name) if isinstance(document, Mapping) else None
    return document


def _is_broken_url(value: Any) -> bool:
    """Whether *value* starts like a URL but is not one; the schema reports everything
    else.
    """
    return (
        isinstance(value, str)
        and value.startswith(("http://", "https://"))
        and not is_address(value)
    )


def _parameter(
    name: str, schema: Mapping[str, Any], required: bool
) -> ParameterDefinition:
    kind = schema.get("type")
    rest = {
        key: value
        for key, value in schema.items()
        if key not in ("type", "description", "default")
    }
    # The `type` of 4.4 is one name: a list of types, or none, is "any" with the rest in
    # its schema.
    if not isinstance(kind, str):
        if kind is not None:
            rest["type"] = kind
        kind = "any"
    return ParameterDefinition(
        name,
        kind,
        str(schema.get("description") or ""),
        required,
        schema.get("default", ABSENT),
        rest or None,
    )
