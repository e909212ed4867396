"""Find all faults of a contract document at once, each with its place and the
correction.

`Contract.from_dict` refuses only a document that it cannot use; an author also wants to
know about keys that are not read and keywords that have no effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from skillruntime.contract.contract import Contract
from skillruntime.contract.document.form import (
    CONTRACT_SCHEMA,
    contract_form,
    version_faults,
)
from skillruntime.contract.schemas.canonical import canonical_form
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.plain_json import find_fault
from skillruntime.contract.schemas.pointer import (
    WHOLE_SCHEMA,
    Location,
    format_pointer,
    value_at,
)
from skillruntime.contract.schemas.references import children, properties_of
from skillruntime.contract.schemas.schema import Schema
from skillruntime.contract.schemas.violations import Violation
from skillruntime.contract.schemas.wording import nearest
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError

__all__ = ["check_document"]

# JSON Schema keywords that authors write at the top of a contract, as in a plain
# schema.
_OF_A_SCHEMA = (
    "properties",
    "required",
    "additionalProperties",
    "type",
    "allOf",
    "anyOf",
    "oneOf",
)
# Other spellings that real skills use, and the correct keys.
_SYNONYMS = {
    "inputs": "input",
    "input_schema": "input",
    "inputSchema": "input",
    "parameters": "input",
    "outputs": "output",
    "output_schema": "output",
    "outputSchema": "output",
    "timeout": "run/timeout_seconds",
    "timeout_ms": "run/timeout_seconds",
    "env": "requires/environment",
    "bins": "requires/commands",
    "binaries": "requires/commands",
    "os": "requires/platform",
    "platforms": "requires/platform",
    "readOnly": "annotations/read_only",
    "readOnlyHint": "annotations/read_only",
    "idempotentHint": "annotations/idempotent",
    "destructiveHint": "annotations/destructive",
    "openWorldHint": "annotations/open_world",
}
# Names in other schema languages for keywords of JSON Schema.
_KEYWORD_SYNONYMS = {
    "min": "minimum",
    "max": "maximum",
    "choices": "enum",
    "options": "enum",
    "values": "enum",
    "regex": "pattern",
    "optional": "required, a list of names beside 'properties'",
}
_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
)
_TYPES = ("string", "integer", "number", "boolean", "array", "object")
# A contract written by a person does not have ten levels.
MAX_LEVELS = 100


def check_document(document: Any, *, path: str) -> list[Diagnostic]:
    """Return the faults of the contract *document*, read from the file *path*; empty if
    it has none.

    >>> document = {"script": "a.py", "run": {"timeout_seconds": "ten"}}
    >>> faults = check_document(document, path="contract.json")
    >>> [fault.message for fault in faults]
    ["'script' belongs under 'run'", '/run/timeout_seconds: "ten" is not a number']
    """
    if not isinstance(document, dict):
        message = f"a contract is a JSON object, not {type(document).__name__}"
        return [Diagnostic("contract-value", Severity.ERROR, path, message)]
    too_deep = Diagnostic(
        "contract-value",
        Severity.ERROR,
        path,
        "the document is nested too deep to be checked",
    )
    fault = find_fault(document, MAX_LEVELS) or ""
    if fault.startswith("nested"):
        return [too_deep]
    try:
        diagnostics = [
            *_fields(document, path),
            *_requirements(document, path),
            *_parts(document, path),
        ]
    # A value that the engine cannot read is also nested too deep.
    except (ValueError, RecursionError):
        return [too_deep]
    if not any(_is_error(diagnostic) for diagnostic in diagnostics):
        diagnostics += _refusal(
            document, path
        )  # only compiling the whole shows these faults
    # Sort the errors first.
    return sorted(diagnostics, key=_is_error, reverse=True)


def _is_error(diagnostic: Diagnostic) -> bool:
    return diagnostic.severity is Severity.ERROR


def _fields(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the unknown keys, and the values of a wrong type."""
    schema = contract_form()
    others: list[Violation] = []
    for violation in schema.violations(document):
        if violation.keyword == "additionalProperties":
            for name in violation.names:
                yield _unknown(name, violation, document, path)
        else:
            others.append(violation)
    for error in explain(others, schema):
        # The next step of an explanation ("Send a number") addresses a model that sends
        # arguments, so reword it for an author.
        action = (error.suggested_action or "").replace("Send ", "write ", 1)
        hint = action[:1].lower() + action[1:]
        yield Diagnostic(
            "contract-value", Severity.ERROR, path, error.message, hint=hint or None
        )
    for message in version_faults(document):
        yield Diagnostic("contract-value", Severity.ERROR, path, message)


def _unknown(
    name: str, violation: Violation, document: dict[str, Any], path: str
) -> Diagnostic:
    where = format_pointer(violation.path)
    known = properties_of(violation.schema)
    shown = f"{where}/{name}" if where else repr(name)
    place = _place_of(name, where.lstrip("/"), document)
    if place is not None:
        return Diagnostic(
            "contract-misplaced", Severity.ERROR, path, f"{shown} {place}"
        )
    rule = "contract-unknown"
    message = f"{shown} is not a field of a contract"
    close = nearest(name, known, cutoff=0.75)
    if close:
        hint = f"did you mean {close!r}?"
        return Diagnostic(rule, Severity.ERROR, path, message, hint=hint)
    # This is a warning, because a newer version of this library may know the key, and
    # the contract works without it.
    fields = ", ".join(map(str, known))
    hint = f"leave it out, or call it 'x-{name}'; known here: {fields}"
    return Diagnostic(rule, Severity.WARNING, path, message, hint=hint)


def _place_of(name: str, parent: str, document: dict[str, Any]) -> str | None:
    """Return a phrase that says where the key *name*, found under *parent*, belongs or
    what its correct name is; ``None`` if unknown.
    """
    if not parent and name in _OF_A_SCHEMA and "input" not in document:
        return "belongs under 'input': the file is a plain JSON Schema"
    synonym = _SYNONYMS.get(name)
    if synonym is not None:
        target, _, key = synonym.rpartition("/")
        if target == parent:
            return f"is called {key!r} in a contract"
        if not target:
            return f"belongs at the top, as {key!r}"
        return f"belongs under {target!r}, as {key!r}"
    fields = CONTRACT_SCHEMA["properties"]
    if parent and name in fields:
        return "belongs at the top of the contract"
    for target in ("run", "requires", "annotations"):
        if target != parent and name in fields[target]["properties"]:
            return f"belongs under {target!r}"
    return None


def _requirements(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the packages that are not written as requirements."""
    packages = properties_of(document, "requires").get("packages")
    if isinstance(packages, str):
        packages = packages.split()
    if not isinstance(packages, list):
        return
    # Imported here, because only a check of a document needs them.
    from packaging.requirements import InvalidRequirement, Requirement

    for index, package in enumerate(map(str, packages)):
        try:
            Requirement(package)
        except InvalidRequirement:
            message = (
                f"/requires/packages/{index}: {package[:60]!r} is not a requirement"
            )
            hint = "write one such as 'pypdf>=5'"
            yield Diagnostic("contract-value", Severity.ERROR, path, message, hint=hint)


def _parts(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the faults inside the schemas and the migrations, checking each part
    separately.
    """
    around: dict[str, Any] = {}
    if isinstance(document.get("$schema"), str):
        around["$schema"] = document["$schema"]
    for key in ("definitions", "$defs"):
        if isinstance(document.get(key), dict):
            around[key] = document[key]
    for key in ("input", "output"):
        if isinstance(document.get(key), dict | bool):
            yield from _schema_faults(document[key], key, around, path)
    if isinstance(document.get("migrations"), list):
        if isinstance(document.get("version"), str):
            around["version"] = document["version"]
        around["migrations"] = document["migrations"]
        for fault in _refusal(around, path):
            # The schema check already reports faults of the document's form.
            if "/migrations/" not in fault.message:
                yield Diagnostic(
                    "contract-migration", Severity.ERROR, path, fault.message
                )


def _schema_faults(
    schema: Any, key: str, around: dict[str, Any], path: str
) -> Iterator[Diagnostic]:
    """Yield the faults of the *schema* under *key*; *around* is the rest of the
    document that the schema may refer to.
    """
    faults = list(_keywords(schema, f"/{key}", path))
    yield from faults
    try:
        contract = Contract.from_dict({**around, key: schema}, name=key)
    except InvalidSkillError as error:
        message = str(error).removeprefix(f"{key}: ")
        yield Diagnostic("contract-schema", Severity.ERROR, path, message)
        return
    compiled = contract.input if key == "input" else contract.output
    if compiled is None:
        return
    is_reported = any(fault.rule == "contract-impossible" for fault in faults)
    if not is_reported and _is_empty(compiled.document):
        message = f"/{key}: no value fits this schema, so every call fails"
        hint = (
            "look for a required property that is not declared, or bounds that "
            "exclude each other"
        )
        yield Diagnostic(
            "contract-impossible", Severity.ERROR, path, message, hint=hint
        )
        return
    yield from _values(compiled, f"/{key}", path)


def _refusal(document: dict[str, Any], path: str) -> list[Diagnostic]:
    """Return the error that refuses a contract of *document*, if it is refused."""
    try:
        Contract.from_dict(document)
    except InvalidSkillError as error:
        return [Diagnostic("contract-value", Severity.ERROR, path, str(error))]
    return []


def _keywords(schema: Any, where: str, path: str) -> Iterator[Diagnostic]:
    """Yield the keywords of *schema*, at any depth, that have no effect because they
    are misspelled, and the empty ranges.
    """
    pending: list[tuple[Any, Location]] = [(schema, WHOLE_SCHEMA)]
    while pending:
        part, location = pending.pop(0)
        if not isinstance(part, dict):
            continue
        pointer = where + format_pointer(location)
        for name, value in part.items():
            problem = _keyword_problem(name, value, part)
            if problem:
                rule, predicate, hint = problem
                message = f"{pointer}/{name} {predicate}"
                yield Diagnostic(rule, Severity.ERROR, path, message, hint=hint)
        for low, high in _BOUNDS:
            if _is_above(part.get(low), part.get(high)):
                message = f"{pointer}: {low} {part[low]} is above {high} {part[high]}"
                yield Diagnostic("contract-impossible", Severity.ERROR, path, message)
        for child in children(part, location):
            pending.append((child.schema, child.location))


def _is_above(least: Any, most: Any) -> bool:
    if not isinstance(least, int | float) or not isinstance(most, int | float):
        return False
    return least > most


@cache
def _keywords_known() -> frozenset[str]:
    """Return the keywords of all drafts of JSON Schema, and OpenAPI's annotation
    keywords.
    """
    # The package has no type annotations.
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]

    names = {"nullable", "example", "discriminator", "xml", "externalDocs"}
    for uri in REGISTRY:
        names.update(properties_of(REGISTRY.contents(uri)))
    return frozenset(names)


def _keyword_problem(
    name: str, value: Any, schema: dict[str, Any]
) -> tuple[str, str, str | None] | None:
    """Return the rule, the sentence and the hint if the member *name* of *schema* is
    not a keyword and is a fault; else ``None``.
    """
    if name in _keywords_known() or name.startswith(("$", "x-")):
        return None
    # Report parameters that are written directly into the schema.
    if "properties" not in schema:
        if isinstance(value, str) and value in _TYPES:
            predicate = f'belongs under \'properties\', as {{"type": "{value}"}}'
            return "contract-misplaced", predicate, None
        is_schema = isinstance(value, dict) and ("type" in value or "enum" in value)
        if is_schema and name != "item":
            return "contract-misplaced", "belongs under 'properties'", None
    keyword = _KEYWORD_SYNONYMS.get(name)
    if keyword is None:
        keyword = nearest(name, sorted(_keywords_known()), cutoff=0.8)
    if keyword is None:
        return None
    return (
        "contract-keyword",
        "is not a keyword of JSON Schema, and checks nothing",
        f"did you mean {keyword!r}?",
    )


def _values(schema: Schema, where: str, path: str) -> Iterator[Diagnostic]:
    """Yield the defaults and examples that do not fit the schema: such a default would
    make a valid call fail, and such an example misleads.
    """
    pending: list[Location] = [WHOLE_SCHEMA]
    while pending:
        location = pending.pop(0)
        part = value_at(schema.document, location)
        if not isinstance(part, dict):
            continue
        values: list[tuple[str, str, Any]] = []
        # `default: null` of a parameter that is not nullable means that it has no
        # default.
        if part.get("default") is not None:
            values.append(("contract-default", "default", part["default"]))
        if isinstance(part.get("examples"), list):
            for index, example in enumerate(part["examples"]):
                values.append(("contract-example", f"examples/{index}", example))
        for rule, name, value in values:
            for error in explain(schema.violations(value, location))[:1]:
                message = f"{where}{format_pointer(location)}/{name}: {error.message}"
                yield Diagnostic(rule, Severity.ERROR, path, message)
        pending += [child.location for child in children(part, location)]


def _is_empty(schema: Any) -> bool:
    """Return whether *schema* provably accepts no value; False if this is undecided."""
    try:
        return str(canonical_form(schema).satisfiability()) == "no"
    # The computation raises many kinds of errors for references and patterns that it
    # cannot follow.
    except Exception:
        return False
