"""The service as an OpenAPI 3.1 document: one path for each skill, with its own inputs and output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from skillruntime.remote.descriptor import AccessPolicy, AuthType, Provider, SkillDescriptor
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION
from skillruntime.remote.hosts import escape_segment

__all__ = ["build_openapi"]

_TEXT: Final = {"type": "string"}
# 6.3 and 4.2 name no form of an id: any text of this length but NUL.
_NAME: Final = {"type": "string", "minLength": 1, "maxLength": 500, "pattern": "^[^\\u0000]*$"}
_ID: Final = {"name": "execution_id", "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
_CURSOR: Final = {"type": "string", "pattern": "^[0-9]{16}\\.[0-9]{1,9}$"}
_WEBHOOK: Final = {
    "type": "string",
    "format": "uri",
    "maxLength": 2000,
    "description": "Where the server sends the execution when it has ended: an https address that is not an inside one",
}
_STATUSES: Final = ["accepted", "running", "completed", "failed", "timeout", "cancelled"]

_ERROR: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {
                "code": _TEXT,
                "message": _TEXT,
                "details": {"type": "object"},
                "retry": {
                    "type": "object",
                    "properties": {
                        "suggested_delay_ms": {"type": "integer", "minimum": 0},
                        "max_attempts": {"type": "integer", "minimum": 0},
                    },
                },
            },
        }
    },
}


def build_openapi(descriptors: Iterable[SkillDescriptor], provider: Provider) -> dict[str, Any]:
    """Return the document for these skills."""
    skills = list(descriptors)
    paths: dict[str, Any] = {
        "/.well-known/skill-sharing": {
            "get": _operation("discover", "The skills that the caller may see", {"type": "object"})
        },
        "/executions": {"get": _list_operation()},
        "/executions/{execution_id}": {
            "get": _execution_operation("getStatus", "The state of an execution"),
            "delete": _execution_operation("cancel", "Cancel an execution"),
        },
        "/executions/{execution_id}/result": {"get": _execution_operation("getResult", "The result of an execution")},
        "/executions/{execution_id}/events": {"get": _events()},
        "/executions/{execution_id}/complete": {"post": _completion()},
        "/executions/{execution_id}/release": {"post": _release()},
        "/health": {"get": _operation("health", "Whether the process runs", {"type": "object"}, errors=())},
    }
    if any(each.extensions.webhooks for each in skills):
        secret = {"type": "object", "required": ["secret"], "properties": {"secret": _TEXT}}
        summary = "The secret that signs the webhooks of this caller"
        paths["/webhook-secret"] = {"get": _operation("webhookSecret", summary, secret, errors=("401", "429"))}
    for each in skills:
        # Escaped, as a client must: braces in an id would be a template (OpenAPI 3.1, 4.8.8), a slash another path.
        path = f"/skills/{escape_segment(each.id)}"
        paths[path] = {"get": _operation(f"describe {each.id}", each.name, {"type": "object"})}
        # One path for each skill, for OpenAPI has no way to make a body's schema depend on a path's parameter.
        paths[f"{path}/invoke"] = {"post": _invocation(each)}
    return {
        "openapi": "3.1.0",
        "info": {"title": provider.name, "version": PROTOCOL_VERSION},
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR, "Execution": execution_schema({})},
            "securitySchemes": _security_schemes(skills),
        },
    }


def execution_schema(output: Any) -> dict[str, Any]:
    """Return the JSON Schema of an execution's document whose output fits *output*."""
    return {
        "type": "object",
        "required": ["execution_id", "status", "skill_id", "timestamps"],
        "properties": {
            "execution_id": _TEXT,
            "status": {"enum": _STATUSES},
            "skill_id": _TEXT,
            "output": output,
            "error": _ERROR["properties"]["error"],
            "progress": {"type": "object"},
            "metadata": {"type": "object"},
            "timestamps": {
                "type": "object",
                "required": ["created_at", "updated_at"],
                # A later release may add a moment; each is a date and time.
                "additionalProperties": {"type": "string", "format": "date-time"},
            },
        },
    }


def _invocation(descriptor: SkillDescriptor) -> dict[str, Any]:
    request = {
        "type": "object",
        "required": ["caller", "skill_id", "inputs"],
        "properties": {
            "caller": {
                "type": "object",
                "required": ["id", "type"],
                "properties": {
                    "id": _NAME,
                    "type": {"enum": ["ifay", "service", "user"]},
                    "credentials": {"type": "object"},
                },
            },
            "skill_id": {"const": descriptor.id},
            "inputs": _embedded(descriptor.input_schema()),
            "context": {
                "type": "object",
                "properties": {
                    "trace_id": _NAME,
                    "priority": {"enum": ["low", "normal", "high"]},
                    "timeout_ms": {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1e15},
                    **({"webhook": _WEBHOOK} if descriptor.extensions.webhooks else {}),
                },
            },
        },
    }
    shown = {"$ref": "#/components/schemas/Execution"}
    operation = {
        "operationId": f"invoke {descriptor.id}",
        "summary": descriptor.name,
        "description": descriptor.description,
        "parameters": [
            _header("Idempotency-Key", {"type": "string", "pattern": "^[!-~]{1,255}$"}),
            _header("Prefer", {"type": "string", "pattern": "^wait=[0-9]$"}),
        ],
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            # Both, as Prefer: wait and a repeated key may find it ended.
            "200": _response("The execution has ended", shown),
            "202": _response("The execution was accepted", shown),
            "504": _response("The execution timed out while the caller waited", shown),
            **_errors(("400", "401", "403", "404", "408", "413", "422", "429", "503")),
        },
    }
    if descriptor.access is not AccessPolicy.PUBLIC:
        operation["security"] = [{_scheme_name(descriptor): []}]
    return operation


def _events() -> dict[str, Any]:
    operation = _execution_operation(
        "getEvents", "Server-sent events: the execution at each change, until it has ended"
    )
    stream = {"description": "The events", "content": {"text/event-stream": {"schema": _TEXT}}}
    over = {"description": "The execution has ended, and the event of Last-Event-ID was the last"}
    responses = {**operation["responses"], "200": stream, "204": over}
    return {**operation, "parameters": [_ID, _header("Last-Event-ID", _TEXT)], "responses": responses}


def _completion() -> dict[str, Any]:
    """An operator ends a task; `read_completion` reads the body."""
    # The message may be left out: who does a task by hand often has only a code to give.
    error = {**_ERROR["properties"]["error"], "required": ["code"]}
    body = {
        "type": "object",
        "oneOf": [{"required": ["output"]}, {"required": ["error"]}],
        "properties": {"output": {}, "error": error},
    }
    operation = _execution_operation("complete", "End a task: for operators")
    return {
        **operation,
        "requestBody": {"required": True, "content": {"application/json": {"schema": body}}},
        "responses": {**operation["responses"], **_errors(("400", "403", "409", "413"))},
    }


def _release() -> dict[str, Any]:
    operation = _execution_operation("release", "Run a held execution again, as a new one: for operators")
    shown = _response("The execution was accepted", {"$ref": "#/components/schemas/Execution"})
    return {**operation, "responses": {**operation["responses"], "202": shown, **_errors(("403", "409", "413"))}}


def _scheme_name(descriptor: SkillDescriptor) -> str:
    """The name of a skill's security scheme: one for each header that keys go into."""
    kind, header = descriptor.auth.type, descriptor.auth.key_header
    return kind.value if kind is AuthType.OAUTH2 or header == "X-API-Key" else f"{kind.value} {header}"


def _embedded(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema inside a larger document: its references lead to its own definitions only where it is a resource."""
    plain = {key: value for key, value in schema.items() if key != "$schema"}
    has_references = "$defs" in plain or "definitions" in plain
    return {"$id": "https://skillruntime.invalid/inputs", **plain} if has_references and "$id" not in plain else plain


def _operation(
    name: str, summary: str, schema: Any, *, errors: tuple[str, ...] = ("401", "404", "429")
) -> dict[str, Any]:
    return {
        "operationId": name,
        "summary": summary,
        "responses": {"200": _response("The answer", schema), **_errors(errors)},
    }


def _execution_operation(name: str, summary: str) -> dict[str, Any]:
    operation = _operation(
        name, summary, {"$ref": "#/components/schemas/Execution"}, errors=("401", "404", "410", "429")
    )
    return {**operation, "parameters": [_ID]}


def _list_operation() -> dict[str, Any]:
    listed = {"type": "object", "required": ["executions"], "properties": {"executions": {"type": "array"}}}
    operation = _operation("listExecutions", "The caller's own executions", listed, errors=("400", "401", "429"))
    limit = {"name": "limit", "in": "query", "schema": {"type": "integer", "minimum": 1, "maximum": 200}}
    return {**operation, "parameters": [limit, {"name": "cursor", "in": "query", "schema": _CURSOR}]}


def _header(name: str, schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "required": False, "schema": schema}


def _response(description: str, schema: Any) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _errors(statuses: Iterable[str]) -> dict[str, Any]:
    return {status: _response("Refused", {"$ref": "#/components/schemas/Error"}) for status in statuses}


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
