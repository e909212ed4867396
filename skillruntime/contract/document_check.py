"""Everything that is wrong with a contract document, at once, each with its place and what would be right.

`Contract.from_dict` stops at what it cannot use; an author also wants to know of keys that nothing reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from skillruntime.contract.contract import Contract
from skillruntime.contract.document_schema import CONTRACT_SCHEMA
from skillruntime.contract.explanation import explain
from skillruntime.contract.plain_json import find_fault
from skillruntime.contract.pointer import format_pointer
from skillruntime.contract.references import properties_of
from skillruntime.contract.schema import Schema
from skillruntime.contract.versions import Version
from skillruntime.contract.violations import Violation
from skillruntime.diagnostic import Diagnostic, Severity
from skillruntime.errors import InvalidSkillError

__all__ = ["check_document"]

# Keys of JSON Schema that authors write at the top of a contract, as in a plain schema.
_OF_A_SCHEMA = ("properties", "required", "additionalProperties", "type", "allOf", "anyOf", "oneOf")
# Other spellings that real skills use, and the keys that are read.
_SYNONYMS = {
    "inputs": "input",
    "input_schema": "input",
    "inputSchema": "input",
    "parameters": "input",
    "outputs": "output",
    "output_schema": "output",
    "outputSchema": "output",
    "timeout": "run/timeout_seconds",
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


def check_document(document: Any, *, path: str) -> list[Diagnostic]:
    """Return what is wrong with the contract *document*, read from the file *path*; empty if nothing is.

    >>> found = check_document({"script": "a.py", "run": {"timeout_seconds": "ten"}}, path="contract.json")
    >>> [each.message for each in found]
    ["'script' belongs under 'run'", '/run/timeout_seconds: "ten" is not a number']
    """
    if not isinstance(document, dict):
        message = f"a contract is a JSON object, not {type(document).__name__}"
        return [Diagnostic("contract-value", Severity.ERROR, path, message)]
    try:
        if (find_fault(document, 100) or "").startswith("nested"):  # no contract that a person writes has ten levels
            raise RecursionError
        found = [*_fields(document, path), *_version(document, path), *_parts(document, path)]
    except (ValueError, RecursionError):  # a value that an engine cannot read is nested too deep as well
        return [Diagnostic("contract-value", Severity.ERROR, path, "the document is nested too deep to be checked")]
    if not any(each.severity is Severity.ERROR for each in found):
        try:  # what only compiling its schemas can show
            Contract.from_dict(document)
        except InvalidSkillError as error:
            found.append(Diagnostic("contract-value", Severity.ERROR, path, str(error)))
    return sorted(found, key=lambda each: each.severity is not Severity.ERROR)


def _fields(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the keys that nothing reads, and the values of a wrong type."""
    schema = Schema(CONTRACT_SCHEMA)
    others: list[Violation] = []
    for violation in schema.violations(document):
        if violation.keyword == "additionalProperties":
            for name in violation.names:
                yield _unknown(name, violation, document, path)
        else:
            others.append(violation)
    for error in explain(others, schema):
        # The next step of an explanation speaks to a model that sends arguments: "Send a number".
        action = (error.suggested_action or "").replace("Send ", "write ", 1)
        hint = action[:1].lower() + action[1:] or None
        yield Diagnostic("contract-value", Severity.ERROR, path, error.message, hint=hint)


def _unknown(name: str, violation: Violation, document: dict[str, Any], path: str) -> Diagnostic:
    where = format_pointer(violation.path)
    known = properties_of(violation.schema)
    shown = f"{where}/{name}" if where else repr(name)
    place = _place_of(name, where, document)
    if place is not None:
        return Diagnostic("contract-misplaced", Severity.ERROR, path, f"{shown} {place}")
    import difflib  # only for names that do not fit

    close = difflib.get_close_matches(name, known, 1, cutoff=0.75)
    if close:
        message = f"{shown} is not a field of a contract"
        return Diagnostic("contract-unknown", Severity.ERROR, path, message, hint=f"did you mean {close[0]!r}?")
    # A warning: a newer version of this library may know the key, and the contract works without it.
    hint = f"leave it out, or call it 'x-{name}'; known here: {', '.join(map(str, known))}"
    return Diagnostic("contract-unknown", Severity.WARNING, path, f"{shown} is not a field of a contract", hint=hint)


def _place_of(name: str, where: str, document: dict[str, Any]) -> str | None:
    """Return where the key *name*, written at *where*, belongs, or what it is called there, if that is known."""
    here = where.lstrip("/")
    if not here and name in _OF_A_SCHEMA and "input" not in document:
        return "belongs under 'input': the file is a plain JSON Schema"
    if (target := _SYNONYMS.get(name)) is not None:
        parent, _, key = target.rpartition("/")
        if parent == here:
            return f"is called {key!r} in a contract"
        return f"belongs under {parent!r}, as {key!r}" if parent else f"belongs at the top, as {key!r}"
    if here and name in CONTRACT_SCHEMA["properties"]:
        return "belongs at the top of the contract"
    for parent in ("run", "requires", "annotations"):
        if parent != here and name in CONTRACT_SCHEMA["properties"][parent]["properties"]:
            return f"belongs under {parent!r}"
    return None


def _version(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    version = document.get("version")
    if not isinstance(version, str):
        return
    try:
        Version.parse(version)
    except ValueError as error:
        yield Diagnostic("contract-value", Severity.ERROR, path, f"/version: {error}")


def _parts(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield what is wrong inside the schemas and the migrations, each part tried by itself."""
    around = {key: document[key] for key in ("$schema", "definitions", "$defs") if _is_usable(key, document.get(key))}
    for key in ("input", "output"):
        if not isinstance(document.get(key), dict | bool):
            continue
        yield from _bare_parameters(key, document[key], path)
        try:
            contract = Contract.from_dict({**around, key: document[key]}, name=key)
        except InvalidSkillError as error:
            yield Diagnostic("contract-schema", Severity.ERROR, path, str(error).removeprefix(f"{key}: "))
            continue
        compiled = contract.input if key == "input" else contract.output
        if compiled is not None and _is_empty(compiled.document):
            message = f"/{key}: no value fits this schema, so every call fails"
            hint = "look for a required property that is not declared, or bounds that exclude each other"
            yield Diagnostic("contract-impossible", Severity.ERROR, path, message, hint=hint)
        elif compiled is not None and key == "input":
            yield from _defaults(compiled, path)
    migrations = document.get("migrations")
    if isinstance(migrations, list):
        yield from _migrations(migrations, document, around, path)


def _bare_parameters(key: str, schema: Any, path: str) -> Iterator[Diagnostic]:
    """Yield the parameters that are written straight under ``input``: as unknown keywords, they would check nothing."""
    if not isinstance(schema, dict) or "properties" in schema:
        return
    for name, declared in schema.items():
        if isinstance(declared, str) and declared in _TYPES and name not in _TEXTS:
            message = f'/{key}/{name} belongs under \'properties\', as {{"type": "{declared}"}}'
            yield Diagnostic("contract-misplaced", Severity.ERROR, path, message)
        if name in _SCHEMA_KEYWORDS or name.startswith(("$", "x-")) or not isinstance(declared, dict):
            continue
        if "type" in declared or "enum" in declared:
            message = f"/{key}/{name} belongs under 'properties'"
            yield Diagnostic("contract-misplaced", Severity.ERROR, path, message)


_TYPES = ("string", "integer", "number", "boolean", "array", "object")
# Keywords whose value may be any text, so also the name of a type.
_TEXTS = ("type", "title", "description", "format", "pattern", "default", "const")

# Keywords whose value is an object: a schema (2020-12, core, section 10; draft-07, 6.5), or any value.
_SCHEMA_KEYWORDS = (
    *("items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties", "contains"),
    *("patternProperties", "propertyNames", "dependentSchemas", "dependencies", "definitions", "contentSchema"),
    *("not", "if", "then", "else", "default", "const", "discriminator"),
)


def _defaults(schema: Schema, path: str) -> Iterator[Diagnostic]:
    """Yield the defaults that do not fit their own parameter: filled in, they would make a valid call fail."""
    for name, declared in properties_of(schema.document).items():
        if not isinstance(declared, dict) or "default" not in declared:
            continue
        for error in explain(schema.violations(declared["default"], ("properties", name)))[:1]:
            message = f"/input/properties/{name}/default: {error.message}"
            yield Diagnostic("contract-default", Severity.ERROR, path, message)


def _migrations(
    migrations: list[Any], document: dict[str, Any], around: dict[str, Any], path: str
) -> Iterator[Diagnostic]:
    version = {"version": document["version"]} if isinstance(document.get("version"), str) else {}
    try:
        Contract.from_dict({**around, **version, "migrations": migrations})
    except InvalidSkillError as error:
        faults = (error.details or {}).get("faults", [])
        # Faults of a migration carry their place; those of the document's form are reported by the schema already.
        if not faults or any(isinstance(fault, Mapping) for fault in faults):
            yield Diagnostic("contract-migration", Severity.ERROR, path, str(error))


def _is_usable(key: str, value: Any) -> bool:
    return isinstance(value, str) if key == "$schema" else isinstance(value, dict)


def _is_empty(schema: Any) -> bool:
    """Whether it is proved that no value fits *schema*; False where that is undecided."""
    try:
        import jsonschema_rs  # the fast wheel may be missing; then nothing is proved
    except ImportError:
        return False
    try:
        return str(jsonschema_rs.canonicalize(schema).satisfiability()) == "no"
    except Exception:  # it raises many kinds for references and patterns that it cannot follow
        return False
