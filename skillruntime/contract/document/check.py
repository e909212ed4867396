"""Everything that is wrong with a contract document, at once, each with its place and
what would be right.

`Contract.from_dict` stops at what it cannot use; an author also wants to know of keys
that nothing reads and of keywords that check nothing.
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

# Keys of JSON Schema that authors write at the top of a contract, as in a plain schema.
_OF_A_SCHEMA = (
    "properties",
    "required",
    "additionalProperties",
    "type",
    "allOf",
    "anyOf",
    "oneOf",
)
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
# Words of other schema languages for a keyword of JSON Schema.
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


def check_document(document: Any, *, path: str) -> list[Diagnostic]:
    """Return what is wrong with the contract *document*, read from the file *path*;
    empty if nothing is.

    >>> found = check_document({"script": "a.py", "run": {"timeout_seconds": "ten"}}, path="contract.json")
    >>> [each.message for each in found]
    ["'script' belongs under 'run'", '/run/timeout_seconds: "ten" is not a number']
    """
    if not isinstance(document, dict):
        message = f"a contract is a JSON object, not {type(document).__name__}"
        return [Diagnostic("contract-value", Severity.ERROR, path, message)]
    try:
        if (find_fault(document, 100) or "").startswith(
            "nested"
        ):  # no contract that a person writes has ten levels
            raise RecursionError
        found = [
            *_fields(document, path),
            *_requirements(document, path),
            *_parts(document, path),
        ]
    except (
        ValueError,
        RecursionError,
    ):  # a value that an engine cannot read is nested too deep as well
        return [
            Diagnostic(
                "contract-value",
                Severity.ERROR,
                path,
                "the document is nested too deep to be checked",
            )
        ]
    if not any(each.severity is Severity.ERROR for each in found):
        found += _refusal(document, path)  # what only compiling the whole can show
    return sorted(found, key=lambda each: each.severity is not Severity.ERROR)


def _fields(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the keys that nothing reads, and the values of a wrong type."""
    schema, _ = contract_form()
    others: list[Violation] = []
    for violation in schema.violations(document):
        if violation.keyword == "additionalProperties":
            for name in violation.names:
                yield _unknown(name, violation, document, path)
        else:
            others.append(violation)
    for error in explain(others, schema):
        # The next step of an explanation speaks to a model that sends arguments: "Send
        # a number".
        action = (error.suggested_action or "").replace("Send ", "write ", 1)
        hint = action[:1].lower() + action[1:] or None
        yield Diagnostic(
            "contract-value", Severity.ERROR, path, error.message, hint=hint
        )
    for message in version_faults(document):
        yield Diagnostic("contract-value", Severity.ERROR, path, message)


def _unknown(
    name: str, violation: Violation, document: dict[str, Any], path: str
) -> Diagnostic:
    where = format_pointer(violation.path)
    known = properties_of(violation.schema)
    shown = f"{where}/{name}" if where else repr(name)
    place = _place_of(name, where, document)
    if place is not None:
        return Diagnostic(
            "contract-misplaced", Severity.ERROR, path, f"{shown} {place}"
        )
    message = f"{shown} is not a field of a contract"
    close = nearest(name, known, cutoff=0.75)
    if close:
        return Diagnostic(
            "contract-unknown",
            Severity.ERROR,
            path,
            message,
            hint=f"did you mean {close!r}?",
        )
    # A warning: a newer version of this library may know the key, and the contract
    # works without it.
    hint = (
        f"leave it out, or call it 'x-{name}'; known here: {', '.join(map(str, known))}"
    )
    return Diagnostic("contract-unknown", Severity.WARNING, path, message, hint=hint)


def _place_of(name: str, where: str, document: dict[str, Any]) -> str | None:
    """Return where the key *name*, written at *where*, belongs, or what it is called
    there, if that is known.
    """
    here = where.lstrip("/")
    if not here and name in _OF_A_SCHEMA and "input" not in document:
        return "belongs under 'input': the file is a plain JSON Schema"
    if (target := _SYNONYMS.get(name)) is not None:
        parent, _, key = target.rpartition("/")
        if parent == here:
            return f"is called {key!r} in a contract"
        return (
            f"belongs under {parent!r}, as {key!r}"
            if parent
            else f"belongs at the top, as {key!r}"
        )
    if here and name in CONTRACT_SCHEMA["properties"]:
        return "belongs at the top of the contract"
    for parent in ("run", "requires", "annotations"):
        if (
            parent != here
            and name in CONTRACT_SCHEMA["properties"][parent]["properties"]
        ):
            return f"belongs under {parent!r}"
    return None


def _requirements(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield the packages that are not written as requirements."""
    packages = properties_of(document, "requires").get("packages", ())
    if isinstance(packages, str):
        packages = packages.split()
    from packaging.requirements import (
        InvalidRequirement,
        Requirement,
    )  # only to check a document

    for index, each in enumerate(packages if isinstance(packages, list) else ()):
        try:
            Requirement(str(each))
        except InvalidRequirement:
            message = (
                f"/requires/packages/{index}: {str(each)[:60]!r} is not a requirement"
            )
            yield Diagnostic(
                "contract-value",
                Severity.ERROR,
                path,
                message,
                hint="write one such as 'pypdf>=5'",
            )


def _parts(document: dict[str, Any], path: str) -> Iterator[Diagnostic]:
    """Yield what is wrong inside the schemas and the migrations, each part tried by
    itself.
    """
    around = {
        key: document[key]
        for key in ("$schema", "definitions", "$defs")
        if _is_usable(key, document.get(key))
    }
    for key in ("input", "output"):
        if not isinstance(document.get(key), dict | bool):
            continue
        faults = list(_keywords(document[key], f"/{key}", path))
        yield from faults
        try:
            contract = Contract.from_dict({**around, key: document[key]}, name=key)
        except InvalidSkillError as error:
            yield Diagnostic(
                "contract-schema",
                Severity.ERROR,
                path,
                str(error).removeprefix(f"{key}: "),
            )
            continue
        compiled = contract.input if key == "input" else contract.output
        is_reported = any(each.rule == "contract-impossible" for each in faults)
        if compiled is not None and not is_reported and _is_empty(compiled.document):
            message = f"/{key}: no value fits this schema, so every call fails"
            hint = (
                "look for a required property that is not declared, or bounds that "
                "exclude each other"
            )
            yield Diagnostic(
                "contract-impossible", Severity.ERROR, path, message, hint=hint
            )
        elif compiled is not None:
            yield from _values(compiled, f"/{key}", path)
    if isinstance(document.get("migrations"), list):
        version = (
            {"version": document["version"]}
            if isinstance(document.get("version"), str)
            else {}
        )
        for fault in _refusal(
            {**around, **version, "migrations": document["migrations"]}, path
        ):
            # Faults of the document's form are reported by the schema already.
            if "/migrations/" not in fault.message:
                yield Diagnostic(
                    "contract-migration", Severity.ERROR, path, fault.message
                )


def _refusal(document: dict[str, Any], path: str) -> list[Diagnostic]:
    """Return the error by which a contract of *document* is refused, if it is."""
    try:
        Contract.from_dict(document)
    except InvalidSkillError as error:
        return [Diagnostic("contract-value", Severity.ERROR, path, str(error))]
    return []


def _keywords(schema: Any, where: str, path: str) -> Iterator[Diagnostic]:
    """Yield the keywords of *schema*, at any depth, that check nothing because they are
    misspelt, and empty ranges.
    """
    pending: list[tuple[Any, Location]] = [(schema, WHOLE_SCHEMA)]
    while pending:
        part, location = pending.pop(0)
        if not isinstance(part, dict):
            continue
        here = where + format_pointer(location)
        for name, value in part.items():
            problem = _keyword_problem(name, value, part)
            if problem:
                yield Diagnostic(
                    problem[0],
                    Severity.ERROR,
                    path,
                    f"{here}/{name} {problem[1]}",
                    hint=problem[2],
                )
        for low, high in _BOUNDS:
            least, most = part.get(low), part.get(high)
            if (
                isinstance(least, int | float)
                and isinstance(most, int | float)
                and least > most
            ):
                message = f"{here}: {low} {least} is above {high} {most}"
                yield Diagnostic("contract-impossible", Severity.ERROR, path, message)
        pending += [
            (child.schema, child.location) for child in children(part, location)
        ]


@cache
def _keywords_known() -> frozenset[str]:
    """Return the keywords of all drafts of JSON Schema, and those of OpenAPI, which
    only describe.
    """
    from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no annotations

    schemas = [REGISTRY.contents(uri) for uri in REGISTRY]
    names = {
        name
        for each in schemas
        if isinstance(each, dict)
        for name in properties_of(each)
    }
    return frozenset(
        names | {"nullable", "example", "discriminator", "xml", "externalDocs"}
    )


def _keyword_problem(
    name: str, value: Any, schema: dict[str, Any]
) -> tuple[str, str, str | None] | None:
    """Return the rule, the sentence and the hint for a member of a *schema* that is not
    a keyword, if it is a fault.
    """
    if name in _keywords_known() or name.startswith(("$", "x-")):
        return None
    # Parameters that are written straight into the schema.
    if "properties" not in schema and isinstance(value, str) and value in _TYPES:
        return (
            "contract-misplaced",
            f'belongs under \'properties\', as {{"type": "{value}"}}',
            None,
        )
    meant = _KEYWORD_SYNONYMS.get(name) or nearest(
        name, sorted(_keywords_known()), cutoff=0.8
    )
    is_parameter = isinstance(value, dict) and not value.keys().isdisjoint(
        ("type", "enum")
    )
    if "properties" not in schema and is_parameter and name != "item":
        return "contract-misplaced", "belongs under 'properties'", None
    if meant is None:
        return None
    return (
        "contract-keyword",
        "is not a keyword of JSON Schema, and checks nothing",
        f"did you mean {meant!r}?",
    )


def _values(schema: Schema, where: str, path: str) -> Iterator[Diagnostic]:
    """Yield the defaults and examples that do not fit: a default would make a valid
    call fail, an example misleads.
    """
    pending: list[Location] = [WHOLE_SCHEMA]
    while pending:
        location = pending.pop(0)
        part = value_at(schema.document, location)
        if not isinstance(part, dict):
            continue
        values = [("default", part["default"])] if "default" in part else []
        examples = part["examples"] if isinstance(part.get("examples"), list) else []
        values += [(f"examples/{index}", each) for index, each in enumerate(examples)]
        for name, value in values:
            # `default: null` of a parameter that is not nullable means that there is
            # none.
            wrong = (
                []
                if name == "default" and value is None
                else schema.violations(value, location)
            )
            for error in explain(wrong)[:1]:
                rule = "contract-default" if name == "default" else "contract-example"
                message = f"{where}{format_pointer(location)}/{name}: {error.message}"
                yield Diagnostic(rule, Severity.ERROR, path, message)
        pending += [child.location for child in children(part, location)]


def _is_usable(key: str, value: Any) -> bool:
    return isinstance(value, str) if key == "$schema" else isinstance(value, dict)


def _is_empty(schema: Any) -> bool:
    """Whether it is proved that no value fits *schema*; False where that is
    undecided.
    """
    import jsonschema_rs

    try:
        return str(jsonschema_rs.canonicalize(schema).satisfiability()) == "no"
    except (
        Exception
    ):  # it raises many kinds for references and patterns that it cannot follow
        return False
