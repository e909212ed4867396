"""Describe the service as an OpenAPI 3.1 document: each skill has a path with its own
inputs and output.

``openapi.json`` beside this file holds the parts that do not depend on the skills. For
each operation that file has the name, the summary, and the schema and statuses of the
answer; error statuses have the schema ``Error``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillruntime.remote.descriptor import (
    AccessPolicy,
    AuthType,
    Provider,
    SkillDescriptor,
)
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION
from skillruntime.remote.hosts import escape_segment

__all__ = ["build_openapi"]


def build_openapi(
    descriptors: Iterable[SkillDescriptor], provider: Provider
) -> dict[str, Any]:
    """Return the OpenAPI document for these skills."""
    skills = list(descriptors)
    template = json.loads(Path(__file__).with_name("openapi.json").read_text("utf-8"))
    paths: dict[str, Any] = {}
    for address, facts in template["operations"].items():
        method, _, path = address.partition(" ")
        if path not in paths:
            paths[path] = _parameters("ExecutionId") if "{" in path else {}
        paths[path][method] = _operation(*facts)
    paths["/.well-known/skill-sharing"]["get"] |= _parameters("Tag")
    paths["/executions"]["get"] |= _parameters("Limit", "Cursor", "Interrupted")
    paths["/executions/{execution_id}/complete"]["post"]["requestBody"] = _body(
        _reference("schemas", "End")
    )
    if not any(skill.extensions.webhooks for skill in skills):
        del paths["/webhook-secret"]
        del template["schemas"]["Context"]["properties"]["webhook"]
    for skill in skills:
        # Escape the id as a client must: braces would be a template (OpenAPI 3.1,
        # 4.8.8), and a slash would change the path.
        path = f"/skills/{escape_segment(skill.id)}"
        description = _operation(
            f"describe {skill.id}", skill.name, "Document 200 401 404 429 503"
        )
        paths[path] = {"get": description}
        # Each skill has a path, because in OpenAPI the schema of a body cannot depend
        # on a path parameter.
        paths[f"{path}/invoke"] = {"post": _invocation(skill)}
    parts = {name: template[name] for name in ("parameters", "schemas")}
    info = {"title": provider.name, "version": PROTOCOL_VERSION}
    components = {**parts, "securitySchemes": _security_schemes(skills)}
    return {"openapi": "3.1.0", "info": info, "paths": paths, "components": components}


def _operation(name: str, summary: str, answers: str) -> dict[str, Any]:
    answer, *statuses = answers.split()
    responses = {}
    for status in statuses:
        # A server that is not ready says why, in the same form.
        is_answer = status < "300" or status == "504" or answer == "Readiness"
        schema = _reference("schemas", answer if is_answer else "Error")
        is_text = is_answer and answer == "Text"
        content = _content(schema, "text/plain" if is_text else "application/json")
        responses[status] = {"description": "", **content}
    return {"operationId": name, "summary": summary, "responses": responses}


def _parameters(*names: str) -> dict[str, Any]:
    return {"parameters": [_reference("parameters", name) for name in names]}


def _reference(kind: str, name: str) -> dict[str, str]:
    return {"$ref": f"#/components/{kind}/{name}"}


def _content(
    schema: Mapping[str, Any], media_type: str = "application/json"
) -> dict[str, Any]:
    return {"content": {media_type: {"schema": schema}}}


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"required": True, **_content(schema)}


def _invocation(descriptor: SkillDescriptor) -> dict[str, Any]:
    properties = {
        "caller": _reference("schemas", "Caller"),
        "skill_id": {"const": descriptor.id},
        "inputs": _embedded(descriptor.input_schema()),
        "context": _reference("schemas", "Context"),
    }
    request = {"required": ["inputs"], "type": "object", "properties": properties}
    answers = "Execution 200 202 400 401 403 404 408 413 422 429 503 504"
    operation = {
        **_operation(f"invoke {descriptor.id}", descriptor.name, answers),
        "description": descriptor.description,
        **_parameters("Key", "Prefer"),
        "requestBody": _body(request),
    }
    if descriptor.access is not AccessPolicy.PUBLIC:
        operation["security"] = [{_scheme_name(descriptor): []}]
    return operation


def _scheme_name(descriptor: SkillDescriptor) -> str:
    """Return the name of a skill's security scheme; each header that carries keys has
    its own scheme.
    """
    kind = descriptor.auth.type
    header = descriptor.auth.key_header
    if kind is AuthType.OAUTH2 or header == "X-API-Key":
        return kind.value
    return f"{kind.value} {header}"


def _embedded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return *schema* for use inside a larger document, with an ``$id``, so that its
    references lead to its own definitions.
    """
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    has_definitions = "$defs" in plain or "definitions" in plain
    if has_definitions and "$id" not in plain:
        return {"$id": "https://skillruntime.invalid/inputs", **plain}
    return plain


def _security_schemes(descriptors: Iterable[SkillDescriptor]) -> dict[str, Any]:
    schemes: dict[str, Any] = {}
    for descriptor in descriptors:
        # List only schemes that a skill uses: generated clients would ask for
        # credentials of every listed scheme.
        match descriptor.auth.type:
            case AuthType.API_KEY | AuthType.CUSTOM:
                schemes[_scheme_name(descriptor)] = {
                    "type": "apiKey",
                    "in": "header",
                    "name": descriptor.auth.key_header,
                }
            case AuthType.OAUTH2:
                schemes["oauth2"] = {"type": "http", "scheme": "bearer"}
    return schemes
