"""The service as an OpenAPI 3.1 document: one path for each skill, with its own inputs and output.

``openapi.json`` beside this file holds what does not depend on the skills, and the two operations of a skill.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skillruntime.remote.descriptor import AccessPolicy, AuthType, Provider, SkillDescriptor
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION
from skillruntime.remote.hosts import escape_segment

__all__ = ["build_openapi"]


def build_openapi(descriptors: Iterable[SkillDescriptor], provider: Provider) -> dict[str, Any]:
    """Return the document for these skills."""
    skills = list(descriptors)
    template = json.loads(Path(__file__).with_name("openapi.json").read_text("utf-8"))
    document: dict[str, Any] = template["document"]
    document["info"] = {"title": provider.name, "version": PROTOCOL_VERSION}
    document["components"]["securitySchemes"] = _security_schemes(skills)
    if not any(each.extensions.webhooks for each in skills):
        del document["paths"]["/webhook-secret"]
        del document["components"]["schemas"]["Context"]["properties"]["webhook"]
    for each in skills:
        # Escaped, as a client must: braces in an id would be a template (OpenAPI 3.1, 4.8.8), a slash another path.
        path = f"/skills/{escape_segment(each.id)}"
        named = {"operationId": f"describe {each.id}", "summary": each.name}
        document["paths"][path] = {"get": {**template["describe"], **named}}
        # One path for each skill, for OpenAPI has no way to make a body's schema depend on a path's parameter.
        document["paths"][f"{path}/invoke"] = {"post": _invocation(template["invoke"], each)}
    return document


def _invocation(template: Mapping[str, Any], descriptor: SkillDescriptor) -> dict[str, Any]:
    schema = template["requestBody"]["content"]["application/json"]["schema"]
    own = {"skill_id": {"const": descriptor.id}, "inputs": _embedded(descriptor.input_schema())}
    request = {**schema, "properties": {**schema["properties"], **own}}
    operation = {
        **template,
        "operationId": f"invoke {descriptor.id}",
        "summary": descriptor.name,
        "description": descriptor.description,
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
    }
    if descriptor.access is not AccessPolicy.PUBLIC:
        operation["security"] = [{_scheme_name(descriptor): []}]
    return operation


def _scheme_name(descriptor: SkillDescriptor) -> str:
    """The name of a skill's security scheme: one for each header that keys go into."""
    kind, header = descriptor.auth.type, descriptor.auth.key_header
    return kind.value if kind is AuthType.OAUTH2 or header == "X-API-Key" else f"{kind.value} {header}"


def _embedded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema inside a larger document: its references lead to its own definitions only where it is a resource."""
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    has_references = "$defs" in plain or "definitions" in plain
    return {"$id": "https://skillruntime.invalid/inputs", **plain} if has_references and "$id" not in plain else plain


def _security_schemes(descriptors: Iterable[SkillDescriptor]) -> dict[str, Any]:
    schemes: dict[str, Any] = {}
    for each in descriptors:
        # A scheme that no skill uses would make generated clients ask for it.
        match each.auth.type:
            case AuthType.API_KEY | AuthType.CUSTOM:
                schemes[_scheme_name(each)] = {"type": "apiKey", "in": "header", "name": each.auth.key_header}
            case AuthType.OAUTH2:
                schemes["oauth2"] = {"type": "http", "scheme": "bearer"}
            case AuthType.NONE:
                pass
    return schemes
