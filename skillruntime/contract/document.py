"""What is wrong with the form of a contract document, by its one definition: `CONTRACT_SCHEMA`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from skillruntime.contract.coercion.policy import policy_named
from skillruntime.contract.document_schema import CONTRACT_SCHEMA
from skillruntime.contract.explanation import explain
from skillruntime.contract.schema import Schema
from skillruntime.contract.versions import Version

__all__ = ["contract_form", "document_faults", "version_faults"]


@cache
def contract_form() -> tuple[Schema, Schema]:
    """Return the schema of a contract document, and the same schema with keys that it does not know allowed."""

    def opened(part: Any) -> Any:
        if isinstance(part, dict):
            return {key: opened(each) for key, each in part.items() if (key, each) != ("additionalProperties", False)}
        return [opened(each) for each in part] if isinstance(part, list) else part

    return Schema(CONTRACT_SCHEMA), Schema(opened(CONTRACT_SCHEMA))


def document_faults(document: Mapping[str, Any]) -> list[str]:
    """Return all that is wrong with the form of the contract *document*, in sentences; its schemas are not looked at.

    >>> document_faults({"name": "weather", "run": []})
    ['/run: [] is not an object']
    """
    faults: list[str] = []
    _, schema = contract_form()
    try:
        if not schema.is_valid(document):
            faults += [error.message for error in explain(schema.violations(document), schema)]
    except (ValueError, TypeError, RecursionError) as error:  # what is not JSON, or is nested too deep for an engine
        return [f"the document cannot be read: {error}"]
    # The commonest mistake in a contract file: the input schema alone.
    if "input" not in document and "properties" in document:
        faults.append("this is a plain JSON Schema; a contract holds it under 'input'")
    faults += version_faults(document)
    if not faults:
        try:
            policy_named(document.get("policy", "safe"))  # an unknown switch, which the open form lets through
        except (TypeError, ValueError) as error:
            faults.append(str(error))
    return faults


def version_faults(document: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with the version of *document*, in a sentence."""
    try:
        if isinstance(document.get("version"), str):
            Version.parse(document["version"])
    except ValueError as error:
        return [f"/version: {error}"]
    return []
