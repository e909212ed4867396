"""Define the form of ``contract.json`` once, as `CONTRACT_SCHEMA`, which editors also
use, and find a document's violations of it.

The contract document, 31.6, defines ``$schema``, ``title``, ``description``,
``version``, ``input``, ``output`` and ``definitions``; the other fields are additions
of this library.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from skillruntime.contract.document.deprecation import deprecation_faults
from skillruntime.contract.repairs.policy import policy_named
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.wording import nearest
from skillruntime.contract.versions import Version

__all__ = [
    "CONTRACT_SCHEMA",
    "EDITOR_SCHEMA",
    "contract_form",
    "document_faults",
    "may_be_repeated",
    "version_faults",
]

# The name of the file that ``$schema`` may refer to, so that editors complete a
# contract's fields.
EDITOR_SCHEMA: Final = "contract.schema.json"

# The similarity from which a key is treated as a misspelled field: `inputs` has 0.91,
# `verson` 0.92. `title_de` has 0.77 with `title`, and may be the author's own field.
_CLOSE: Final = 0.85

_PLATFORM: Final = {"enum": ["linux", "macos", "windows"]}
_SCHEMA: Final = {"type": ["object", "boolean"]}
_NAMES: Final = {"type": "array", "items": {"type": "string"}}


def _object(
    description: str, properties: dict[str, Any], **more: Any
) -> dict[str, Any]:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        # Names that start with "x-" are the author's own, as in OpenAPI.
        "patternProperties": {"^x-": True},
        "additionalProperties": False,
        **more,
    }


def _names(description: str) -> dict[str, Any]:
    return {**_NAMES, "description": description}


def _words(description: str) -> dict[str, Any]:
    # A string of words, as in frontmatter, is also accepted; but the variables that a
    # script receives must be a list.
    return {
        **_NAMES,
        "type": ["string", "array"],
        "description": f"{description} A list, or words in one string.",
    }


def _flag(description: str) -> dict[str, Any]:
    return {"type": "boolean", "description": description}


_STEPS = {
    "rename": "Give a member another name in the same object: {from, to}.",
    "move": "Move a value to another place: {from, to}.",
    "wrap": "Turn a value into an array of one; an array stays.",
    "unwrap": "Turn an array of one into its item.",
    "set_default": "Set a value where none was given: {at, value}.",
    "drop": "Remove a member that the new shape does not have.",
    "map": "Replace values: {at, values}.",
    "convert": "Convert a type {at, from, to} or a unit {at, factor} or {at, divisor}.",
    "split": "Split a string into an array: {at, separator}.",
}

_STEP = {
    "type": "object",
    "description": "One change, as an object with one key. Places are JSON Pointers "
    "(RFC 6901).",
    "properties": {
        kind: {"type": ["string", "object"], "description": text}
        for kind, text in _STEPS.items()
    },
    "additionalProperties": False,
    "minProperties": 1,
    "maxProperties": 1,
}

_REQUIRES = _object(
    "What the skill needs. Where something is missing, the skill is listed as "
    "unavailable.",
    {
        "runtime": {
            "type": "string",
            "description": "The versions of skillruntime, such as '>=1.0.0,<2.0.0'.",
        },
        "commands": _words("Commands that must be on PATH."),
        "environment": _names(
            "Environment variables that must be set; the host grants them to an "
            "untrusted script."
        ),
        "network": {
            "anyOf": [
                {"type": "boolean"},
                {"type": "array", "items": {"type": "string"}},
            ],
            "description": "Whether the script uses the network, or the hosts that it "
            "connects to. The host grants it.",
        },
        "write": {
            "anyOf": [
                {"type": "boolean"},
                {"type": "array", "items": {"type": "string"}},
            ],
            "description": "The directories outside the workspace that the script "
            "changes. The host grants them.",
        },
        "packages": _words("Python packages, as requirements: 'pypdf>=5'."),
        "platform": {
            "anyOf": [_PLATFORM, {"type": "array", "items": _PLATFORM}],
            "description": "The platforms it runs on.",
        },
        "tools": _words(
            "Tools of the host that the skill uses; the host decides whether it has "
            "them."
        ),
    },
)

_RUN = _object(
    "How a call is run. Without it, the host registers a Python function.",
    {
        "script": {
            "type": "string",
            "minLength": 1,
            "description": "The script, relative to the skill's directory: "
            "'scripts/digest.py'.",
        },
        "timeout_seconds": {
            "type": "number",
            "exclusiveMinimum": 0,
            "description": "How long a call may run, in seconds. "
            "Default: the runtime's.",
        },
        "environment": _names(
            "Environment variables that the script receives if they are set."
        ),
        "exit_codes": {
            "type": "object",
            "description": "The exit codes beside 0 that are results, and what each "
            'means: {"1": "problems were found"}.',
            "propertyNames": {"pattern": "^[1-9][0-9]*$"},
            "additionalProperties": {"type": "string", "minLength": 1},
        },
        "command_line": {
            "type": "object",
            "description": "Pass the arguments as words instead of JSON on stdin. "
            "`skillruntime init` writes it.",
        },
    },
)

_ANNOTATIONS = _object(
    "What a call does, for hosts that decide whether to ask or to retry.",
    {
        "read_only": _flag("It changes nothing. Default: unknown."),
        "idempotent": _flag(
            "Repeating it changes nothing further, so a timed-out call may be repeated."
        ),
        "destructive": _flag("It may delete or overwrite."),
        "open_world": _flag("It reaches systems outside the host, such as the web."),
    },
)

_POLICY = {
    "description": "How far malformed arguments are repaired. Default: safe.",
    "anyOf": [
        {"enum": ["strict", "safe", "lenient"]},
        {
            "type": "object",
            "properties": {
                "repair": _flag("Whether to repair at all. Default: true."),
                "on_unknown": {
                    "enum": ["refuse", "drop"],
                    "description": "Default: refuse.",
                },
            },
            "additionalProperties": False,
        },
    ],
}

_MIGRATION = _object(
    "How arguments of older versions become arguments of a newer one.",
    {
        "from": {
            "type": "string",
            "description": "The range of old versions. "
            "Default: from the previous 'to' on.",
        },
        "to": {"type": "string", "description": "The version that the steps lead to."},
        "accepts": {
            **_SCHEMA,
            "description": "The input schema of the last of the old versions.",
        },
        "steps": {
            "type": "array",
            "items": _STEP,
            "description": "The changes of the arguments, in order.",
        },
        "description": {"type": "string"},
    },
    required=["to"],
)

# The schema of a contract document, which ``skillruntime schema contract`` prints.
CONTRACT_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "contract.json",
    **_object(
        "The contract of a skill: what it accepts and returns, at one version, and "
        "how it runs.",
        {
            "$schema": {
                "type": "string",
                "description": "The dialect of 'input' and 'output', or a path to "
                f"{EDITOR_SCHEMA} for editors.",
            },
            "$comment": {"type": "string", "description": "A note for people."},
            "$id": {"type": "string"},
            "name": {
                "type": "string",
                "description": "The callable's name. Default: that of the skill.",
            },
            "title": {"type": "string", "description": "A title for people."},
            "description": {
                "type": "string",
                "description": "What a call does and when to use it, for models.",
            },
            "version": {
                "type": "string",
                "description": "The semantic version of the contract: 1.0.0.",
            },
            "input": {
                **_SCHEMA,
                "description": "The JSON Schema of the arguments. Default: any object.",
            },
            "output": {
                **_SCHEMA,
                "description": "The JSON Schema of the result. Default: anything.",
            },
            "definitions": {
                "type": "object",
                "description": "Schemas that 'input' and 'output' refer to.",
            },
            "$defs": {
                "type": "object",
                "description": "The same, under the keyword of newer JSON Schema.",
            },
            "requires": _REQUIRES,
            "run": _RUN,
            "annotations": _ANNOTATIONS,
            "policy": _POLICY,
            "aliases": {
                "type": "object",
                "description": "Other names that models write for a parameter: {name: "
                "[alias, ...]}.",
                "additionalProperties": {
                    **_NAMES,
                    "items": {"type": "string", "minLength": 1},
                },
            },
            "migrations": {
                "type": "array",
                "items": _MIGRATION,
                "description": "From older versions to this one.",
            },
            "deprecated": _object(
                "Old versions whose calls are taken for a limited time: a call of them "
                "is answered with a warning, and is never refused.",
                {
                    "versions": {
                        "type": "string",
                        "description": "The range of the versions: '>=1.0.0,<2.0.0'.",
                    },
                    "until": {
                        "type": "string",
                        "pattern": "^\\d{4}-\\d{2}-\\d{2}$",
                        "description": "The last day on which they are promised: "
                        "2027-01-01.",
                    },
                },
                required=["versions"],
            ),
            "derived": {
                "type": "object",
                "description": "Where a contract comes from that was read from a "
                "script.",
            },
        },
    ),
}


@cache
def contract_form() -> Schema:
    """Return the schema of a contract document."""
    return Schema(CONTRACT_SCHEMA)


@cache
def _open_form() -> Schema:
    """Return the schema of a contract document with unknown keys allowed."""
    return Schema(_opened(CONTRACT_SCHEMA))


def _opened(part: Any) -> Any:
    """Return *part* of a schema without each ``"additionalProperties": false``."""
    if isinstance(part, list):
        return [_opened(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _opened(member)
        for key, member in part.items()
        if (key, member) != ("additionalProperties", False)
    }


def document_faults(document: Mapping[str, Any]) -> list[str]:
    """Return all faults in the form of the contract *document* as sentences; its
    schemas are not checked.

    >>> document_faults({"name": "weather", "run": []})
    ['/run: [] is not an object']
    """
    faults: list[str] = []
    schema = _open_form()
    try:
        if not schema.is_valid(document):
            errors = explain(schema.violations(document), schema)
            faults += [error.message for error in errors]
    # The document is not JSON, or is nested too deep for the engine.
    except (ValueError, TypeError, RecursionError) as error:
        return [f"the document cannot be read: {error}"]
    # The most common mistake in a contract file is to write only the input schema.
    if "input" not in document and "properties" in document:
        faults.append("this is a plain JSON Schema; a contract holds it under 'input'")
    faults += _misspelt_keys(document)
    faults += version_faults(document)
    if not faults:
        faults += deprecation_faults(document)
    if not faults:
        # The policy may have an unknown switch, which the open form accepts.
        try:
            policy_named(document.get("policy", "safe"))
        except (TypeError, ValueError) as error:
            faults.append(str(error))
    return faults


def _misspelt_keys(document: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each key of *document* that is similar to a contract's
    field, or one sentence if no key is a field, since such a contract would accept any
    call.

    Other unknown keys are accepted here and reported by `check_document`.
    """
    fields = CONTRACT_SCHEMA["properties"].keys()
    unknown = _unknown_keys(document)
    absent: list[str] = []
    for field in fields:
        if field not in document and not field.startswith("$"):
            absent.append(field)
    faults: list[str] = []
    for key in unknown:
        meant = nearest(key, absent, cutoff=_CLOSE)
        if meant is not None:
            faults.append(f"{key!r} is not a field of a contract; is {meant!r} meant?")
    if unknown and not faults and fields.isdisjoint(document):
        names = ", ".join(map(repr, unknown[:5]))
        faults.append(
            f"this is not a contract: it has {names}, and no field of one, such as "
            "'input'"
        )
    return faults


def _unknown_keys(document: Mapping[str, Any]) -> list[str]:
    """Return the keys of *document* that are neither a field of a contract nor the
    author's own (``x-...``).
    """
    unknown: list[str] = []
    for key in document:
        if isinstance(key, str) and not key.startswith("x-"):
            if key not in CONTRACT_SCHEMA["properties"]:
                unknown.append(key)
    return unknown


def version_faults(document: Mapping[str, Any]) -> list[str]:
    """Return the fault of the version in *document* as a sentence, in a list that may
    be empty.
    """
    try:
        if isinstance(document.get("version"), str):
            Version.parse(document["version"])
    except ValueError as error:
        return [f"/version: {error}"]
    return []


def may_be_repeated(annotations: Mapping[str, Any]) -> bool:
    """Return whether a call may safely be repeated: the contract's *annotations* say
    that it is idempotent or only reads.

    >>> may_be_repeated({"read_only": True}), may_be_repeated({})
    (True, False)
    """
    return annotations.get("idempotent") is True or annotations.get("read_only") is True
