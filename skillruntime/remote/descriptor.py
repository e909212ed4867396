"""Read and write a skill's descriptor, in which its provider states what the skill does
and how to call it (descriptor document 4).

JSON <-> `SkillDescriptor` <-> `Contract`, without I/O. Reading collects every fault and
raises once; fields that the protocol documents do not name are kept, so that a
descriptor that is read and written is unchanged.
"""

from __future__ import annotations

from collections import Counter
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


# A broken schema is reported when the descriptor is read, not at the first call that
# uses it.
_URLS: tuple[tuple[str, ...], ...] = (
    ("endpoint", "url"),
    ("endpoint", "status_url"),
    ("endpoint", "result_url"),
    ("auth", "oauth2", "token_url"),
    ("auth", "oauth2", "authorization_url"),
    ("extensions", "executions_url"),
    ("protocol", "changelog_url"),
    ("provider", "url"),
    ("documentation_url",),
)
_VERSIONS: tuple[tuple[str, ...], ...] = (("version",), ("protocol", "version"))
_MOST_FAULTS = 20  # in a message; an empty descriptor has twelve
_WAY = 30.0  # seconds for the network, and for waiting until the skill runs
# Keywords that say nothing about which values are valid (JSON Schema 2020-12, core 8
# and validation 9).
_WITHOUT_MEANING = {"$schema", "title", "description", "$id", "$comment", "examples"}


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    """The whole descriptor (4.2).

    >>> descriptor = SkillDescriptor(
    ...     id="com.example.echo",
    ...     name="Echo",
    ...     version="1.2.0",
    ...     description="Says it again",
    ...     provider=Provider("Example"),
    ...     endpoint=InvocationEndpoint("https://api.example.com/echo/invoke"),
    ...     inputs=(ParameterDefinition("text", required=True),),
    ... )
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
        """Parse *document* into a descriptor.

        Raises:
            InvalidSkillError: it is not a descriptor; ``details["faults"]`` lists
                everything that is wrong.
        """
        faults = find_faults(document)
        if faults:
            listed = "; ".join(faults[:_MOST_FAULTS])
            if len(faults) > _MOST_FAULTS:
                listed += f"; and {len(faults) - _MOST_FAULTS} more"
            raise InvalidSkillError(
                f"The descriptor is invalid: {listed}", details={"faults": faults}
            )
        return read(cls, document)

    def to_dict(self) -> dict[str, Any]:
        """Return the descriptor as a JSON object; fields without a value are left
        out.
        """
        return write(self)

    @property
    def line(self) -> str:
        """The skill's id with its MAJOR version: every execution belongs to one.

        >>> endpoint = InvocationEndpoint("https://e.example/invoke")
        >>> SkillDescriptor("e.t-v1", "T", "2.1.0", "", Provider("E"), endpoint).line
        'e.t-v1@2'
        """
        return f"{self.id}@{Version.parse(self.version).major}"

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON Schema of all inputs: the one of the extension if present,
        else one that is made from ``inputs``.
        """
        # `inputs` (4.4) cannot express rules between parameters; a contract with such
        # rules is announced as a complete schema.
        if self.extensions.input_schema is not None:
            return dict(self.extensions.input_schema)
        return schema_from_inputs(self.inputs)

    def to_contract(self, name: str = "") -> Contract:
        """Return the descriptor's promises as a contract, whose name is *name* or else
        the descriptor's id.

        Its timeout is half a minute longer than the endpoint's, which begins when the
        skill runs, not when the request is sent.
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
        # A client that waited exactly as long as the skill may run would give up just
        # before the answer.
        if self.endpoint.timeout_ms is not None:
            seconds = self.endpoint.timeout_ms / 1000 + _WAY
            document["run"] = {"timeout_seconds": seconds}
        visible = visible_document(document, one_line=False)
        return Contract.from_dict(visible, name=name or self.id)


def schema_from_inputs(inputs: tuple[ParameterDefinition, ...]) -> dict[str, Any]:
    """Return the JSON Schema of an object with these parameters and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {parameter.name: parameter.to_schema() for parameter in inputs},
        "additionalProperties": False,
    }
    required = [parameter.name for parameter in inputs if parameter.required]
    if required:
        schema["required"] = required
    return schema


def inputs_from_schema(
    schema: Mapping[str, Any] | bool,
) -> tuple[tuple[ParameterDefinition, ...], bool]:
    """Return the parameters that *schema* describes, and whether they express the
    complete schema.

    >>> inputs, is_whole = inputs_from_schema({
    ...     "type": "object",
    ...     "properties": {"n": {"type": "integer", "minimum": 1}},
    ...     "required": ["n"],
    ...     "additionalProperties": False,
    ... })
    >>> inputs[0].to_schema(), inputs[0].required, is_whole
    ({'type': 'integer', 'minimum': 1}, True, True)
    """
    if isinstance(schema, bool):
        return (), False
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        properties = {}
    required = schema.get("required")
    if not isinstance(required, list):
        required = []
    inputs = tuple(
        _parameter(name, part, name in required) for name, part in properties.items()
    )
    return inputs, _is_expressed_by(schema, inputs)


def _is_expressed_by(
    schema: Mapping[str, Any], inputs: tuple[ParameterDefinition, ...]
) -> bool:
    """Return whether the schema of *inputs* has the same meaning as *schema*."""
    theirs = {
        name: value for name, value in schema.items() if name not in _WITHOUT_MEANING
    }
    ours = schema_from_inputs(inputs)
    # The order of `required` means nothing (validation, 6.5.3), nor does an empty one;
    # Python compares lists by their order.
    required = theirs.setdefault("required", [])
    if isinstance(required, list):
        theirs["required"] = sorted(required)
    ours["required"] = sorted(ours.get("required", []))
    return theirs == ours


def find_faults(document: Any) -> list[str]:
    """Return the faults of a descriptor's document as sentences; none if it is a
    descriptor.
    """
    # Check first for values that JSON text cannot hold: NaN, keys that are not strings,
    # a depth that would break the validator.
    fault = find_fault(document)
    if fault:
        return [f"it is not JSON: {fault}"]
    faults = [error.message for error in explain(_form().violations(document))]
    if not isinstance(document, Mapping):
        return faults
    # SemVer forbids what a readable pattern allows (leading zeros, empty identifiers):
    # its parser decides.
    for path in _VERSIONS:
        version = _at(document, path)
        if isinstance(version, str):
            try:
                Version.parse(version)
            except ValueError as error:
                faults.append(f"{error} - at /{'/'.join(path)}")
    for path in _URLS:
        if _is_broken_url(_at(document, path)):
            faults.append(f"it is not a URL - at /{'/'.join(path)}")
    faults += [
        f"two inputs are named {name!r} - at /inputs"
        for name in _repeated_names(document.get("inputs"))
    ]
    if faults:
        return faults
    # Only in a document of the right form are the schemas at their places.
    return _default_faults(document) + _schema_faults(document)


@cache
def _form() -> Schema:
    return Schema(DESCRIPTOR_SCHEMA, where="descriptor")


def _default_faults(document: Mapping[str, Any]) -> list[str]:
    """Return the faults of defaults that do not have their parameter's type: a caller
    who relies on such a default would be refused.
    """
    faults = []
    for index, item in enumerate(document["inputs"]):
        kind = item.get("type", "any")
        default = item.get("default")
        # 4.4 writes "no default" as null.
        if default is not None and not _is_of_type(default, kind):
            faults.append(
                f"the default of {item['name']!r} is not of the type {kind} - at "
                f"/inputs/{index}/default"
            )
    return faults


def _is_of_type(value: Any, kind: str) -> bool:
    return kind == "any" or Schema({"type": kind}).is_valid(value)


def _schema_faults(document: Mapping[str, Any]) -> list[str]:
    """Compile each schema of a valid document, to be sure that values can be validated
    against it.
    """
    schemas = {
        f"/inputs/{index}/schema": item.get("schema")
        for index, item in enumerate(document["inputs"])
    }
    schemas["/output/schema"] = _at(document, ("output", "schema"))
    extension = ("extensions", "input_schema")
    schemas["/extensions/input_schema"] = _at(document, extension)
    faults = []
    for where, schema in schemas.items():
        if schema is None:
            continue
        try:
            Schema(schema, where=where)
        except InvalidSkillError as error:
            faults.append(str(error))
    return faults


def _at(document: Any, path: tuple[str, ...]) -> Any:
    """Return the value at *path*; None if it is absent."""
    for name in path:
        if not isinstance(document, Mapping):
            return None
        document = document.get(name)
    return document


def _repeated_names(inputs: Any) -> list[str]:
    """Return the names that more than one input has."""
    # uniqueItems compares complete items: two inputs with one name and different types
    # would pass.
    if not isinstance(inputs, list):
        return []
    names = Counter(
        str(item.get("name")) for item in inputs if isinstance(item, Mapping)
    )
    return sorted(name for name, count in names.items() if count > 1)


def _is_broken_url(value: Any) -> bool:
    """Return whether *value* starts like a URL but is not one; the schema reports
    everything else.
    """
    return (
        isinstance(value, str)
        and value.startswith(("http://", "https://"))
        and not is_address(value)
    )


def _parameter(name: str, schema: Any, required: bool) -> ParameterDefinition:
    """Return a member of an input schema as a parameter."""
    if not isinstance(schema, Mapping):
        schema = {}
    kind = schema.get("type")
    rest = {
        key: value
        for key, value in schema.items()
        if key not in ("type", "description", "default")
    }
    # In 4.4 `type` is a single name. A list of types, or no type, becomes "any", and the
    # rest is kept as its schema.
    if not isinstance(kind, str):
        if kind is not None:
            rest["type"] = kind
        kind = "any"
    default = schema.get("default", ABSENT)
    # A contract never fills in such a default, so it is not announced.
    if default is not None and default is not ABSENT and not _is_of_type(default, kind):
        default = ABSENT
    return ParameterDefinition(
        name,
        kind,
        str(schema.get("description") or ""),
        required,
        default,
        rest or None,
    )
