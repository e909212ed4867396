"""Provide the validator of the contract document (31.3) with its original interface, so
that the document's examples run unchanged.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from skillruntime.contract.repairs.coercion import coerce
from skillruntime.contract.repairs.record import without_decimals
from skillruntime.contract.schemas.explanation import explain
from skillruntime.contract.schemas.schema import Schema
from skillruntime.errors import SkillInputError

__all__ = ["SkillInputValidator"]


class SkillInputValidator:
    """Validate a skill's input by a JSON Schema, with the messages of jsonschema.

    `Contract.accept` does more; this is for code that follows the document.

    >>> validator = SkillInputValidator({"type": "object", "required": ["topics"]})
    >>> validator.validate({"time_range": "today"})
    (False, ["'topics' is a required property"])
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        if not isinstance(schema, dict | bool):
            raise TypeError(
                "SkillInputValidator takes a JSON Schema, as a dict; got "
                f"{schema!r:.80}"
            )
        # Imported here, because it is slow and only this class uses its messages.
        import jsonschema

        self.schema = schema
        validator = jsonschema.Draft202012Validator(
            schema, format_checker=_format_checker()
        )
        self.validator: jsonschema.Draft202012Validator = validator
        self._compiled = Schema(schema)

    def validate(self, data: Any) -> tuple[bool, list[str]]:
        """Return whether *data* fits, and a sentence for each fault, preceded by its
        path in brackets.
        """
        messages: list[str] = []
        for error in self.validator.iter_errors(data):
            path = " -> ".join(map(str, error.absolute_path))
            if path:
                messages.append(f"[{path}] {error.message}")
            else:
                messages.append(error.message)
        return not messages, messages

    def validate_and_raise(self, data: Any) -> None:
        """Raise an error if *data* does not fit.

        Raises:
            SkillInputError: ``errors`` are the sentences of `validate`;
                ``skill_errors`` are the same faults as structured errors.
        """
        is_valid, errors = self.validate(data)
        if not is_valid:
            faults = explain(self._compiled.violations(data), self._compiled)
            raise SkillInputError(
                "Input validation failed", errors=errors, skill_errors=faults
            )

    def coerce_and_validate(self, data: dict[str, Any]) -> dict[str, Any]:
        """Return *data* with the typical errors of models repaired.

        >>> validator = SkillInputValidator({"properties": {"n": {"type": "integer"}}})
        >>> validator.coerce_and_validate({"n": "5"})
        {'n': 5}

        Raises:
            SkillInputError: *data* cannot be repaired.
        """
        coerced: dict[str, Any] = without_decimals(coerce(data, self._compiled).value)
        self.validate_and_raise(coerced)
        return coerced


_FORMATS = (
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "time",
    "uri",
    "uri-reference",
    "uri-template",
    "uuid",
)
"""The formats of JSON Schema 2020-12, validation, section 7.3."""


@cache
def _format_checker() -> Any:
    """Return a checker that asks the engine of `Contract`; jsonschema's own checkers
    need nine packages.
    """
    import jsonschema
    import jsonschema_rs

    checker = jsonschema.FormatChecker(formats=())
    for name in _FORMATS:
        validator = jsonschema_rs.Draft202012Validator(
            {"format": name}, validate_formats=True
        )
        checker.checks(name)(validator.is_valid)
    return checker
