"""Repair the calls of existing tools: `repair` for one schema, `Repairer` for a list of
tools.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from skillruntime.contract.contract import Accepted, Contract, Formats
from skillruntime.contract.reading.tool_names import named_tool, unknown_tool
from skillruntime.contract.repairs.policy import Policy, policy_named
from skillruntime.errors import InvalidSkillError

__all__ = ["Repairer", "repair"]

_KEPT = 1_024  # contracts
_SCHEMA_KEYS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "parameters_json_schema",
    "parametersJsonSchema",
)
_GEMINI_TYPES = {"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}


def repair(
    arguments: Any,
    schema: Mapping[str, Any] | type[Any],
    *,
    name: str | None = None,
    finish_reason: str | None = None,
    formats: Formats | None = None,
    policy: str | Policy | None = None,
) -> Accepted:
    """Return *arguments* repaired to fit *schema*, and the repairs.

    This is `Contract.from_schema` and `Contract.accept` with a cached contract.
    *arguments* are a mapping, or the model's text. *schema* is a JSON Schema, or a
    class with fields (a pydantic model, dataclass or TypedDict). *name* is the tool's
    name, which a call in a text may state. *finish_reason* is the provider's word for
    why the model stopped. *policy* is as in `Contract.accept`, and *formats* as in
    `Contract.from_dict`; by default the formats of a class are asserted, since ``date``
    is a type there.

    >>> schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    >>> accepted = repair('{"limit": "5",}', schema)
    >>> accepted.arguments, [repair.rule for repair in accepted.repairs]
    ({'limit': 5}, ['trailing-comma', 'number-text'])

    Raises:
        SkillInputError: the arguments do not fit, or could be read in two ways; the
            errors say what to send instead.
        InvalidSkillError: *schema* is not a JSON Schema.
    """
    # A mapping may be changed later, so the contract is cached by its text.
    if not isinstance(schema, Mapping | type | bool):
        raise InvalidSkillError(
            f"a schema is a mapping, or a class with fields; got {schema!r:.80}"
        )
    key: Any = schema
    if isinstance(schema, Mapping):
        key = json.dumps(schema, default=repr)
    contract = _contract(key, name or "", formats)
    return contract.accept(arguments, finish_reason=finish_reason, policy=policy)


class Repairer:
    """Repairs the arguments of calls of *tools*, which are definitions in the form of
    OpenAI, Anthropic, Gemini or MCP.

    A definition is a mapping, or an object of their libraries with ``model_dump``. A
    schema is compiled at the first call of its tool; *formats* and *policy* are as in
    `repair`.

    >>> schema = {"type": "object", "properties": {"limit": {"type": "integer"}}}
    >>> tools = [{"name": "search", "input_schema": schema}]
    >>> Repairer(tools).accept("search", {"limit": "5"}).arguments
    {'limit': 5}

    Raises:
        ValueError: two tools have the same name, or there is no such policy.
        TypeError: a tool is not a definition.
    """

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        formats: Formats = "annotate",
        policy: str | Policy | None = None,
    ) -> None:
        self._schemas: dict[str, Any] = {}
        for tool in tools:
            for name, schema in _definitions(tool):
                if name in self._schemas:
                    raise ValueError(
                        f"two tools have the name {name[:80]!r}: a call of it could "
                        "mean either"
                    )
                self._schemas[name] = schema
        self._formats = formats
        self._policy = policy
        self._puts_names_right = policy is None or policy_named(policy).repair
        self._contracts: dict[str, Contract] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tools, in their order."""
        return tuple(self._schemas)

    def meant_name(self, name: str) -> str:
        """Return the name of the tool that a model meant by *name*.

        An exact name wins. Otherwise case and separators may differ, and a prefix such
        as ``functions.`` is ignored, except under the policy ``"strict"``.

        >>> tools = [{"name": "read_file", "input_schema": {"type": "object"}}]
        >>> Repairer(tools).meant_name("functions.ReadFile")
        'read_file'

        Raises:
            SkillNotFoundError: *name* means none of the tools, or could mean several;
                the error has the closest names.
        """
        meant = named_tool(name, self._schemas)
        if meant != name and not self._puts_names_right:
            raise unknown_tool(name, self._schemas)
        return meant

    def accept(
        self, name: str, arguments: Any, *, finish_reason: str | None = None
    ) -> Accepted:
        """Return *arguments* repaired to fit the tool that `meant_name` finds for
        *name*, and the repairs; see `repair`.

        Raises:
            SkillNotFoundError: no tool has this name.
            SkillInputError: the arguments do not fit, or could be read in two ways; the
                errors say what to send instead.
            InvalidSkillError: the tool's schema is not a JSON Schema.
        """
        name = self.meant_name(name)
        contract = self._contracts.get(name)
        if contract is None:
            contract = self._contracts[name] = Contract.from_schema(
                self._schemas[name], name=name, formats=self._formats
            )
        return contract.accept(
            arguments, finish_reason=finish_reason, policy=self._policy
        )


@lru_cache(_KEPT)
def _contract(schema: Any, name: str, formats: Formats | None) -> Contract:
    if isinstance(schema, str):
        return Contract.from_schema(
            json.loads(schema), name=name, formats=formats or "annotate"
        )
    return Contract.from_schema(schema, name=name, formats=formats or "assert")


def _definitions(tool: Any) -> Iterator[tuple[str, Any]]:
    """Yield the name and the schema of each function that the definition *tool*
    declares.

    Raises:
        TypeError: *tool* is not a definition of a tool.
    """
    definition = tool
    if hasattr(tool, "model_dump"):
        definition = tool.model_dump(by_alias=True, exclude_none=True)
    if not isinstance(definition, Mapping):
        raise TypeError(
            f"a tool is defined by a mapping with its name and schema; got {tool!r:.80}"
        )
    # A tool of Gemini is a list of functions.
    functions = definition.get(
        "functionDeclarations", definition.get("function_declarations")
    )
    if isinstance(functions, list):
        for function in functions:
            yield from _definitions(function)
        return
    function = definition.get("function", definition)
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise TypeError(f"a tool's definition has a name; got {tool!r:.80}")
    schema: Any = {"type": "object"}
    for key in _SCHEMA_KEYS:
        if key in function:
            schema = function[key]
            break
    yield function["name"], _json_schema(schema)


def _json_schema(schema: Any) -> Any:
    """Return *schema* with Gemini's types (``STRING``, ``nullable``) replaced by those
    of JSON Schema.
    """
    if isinstance(schema, list):
        return [_json_schema(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    result = {key: _json_schema(value) for key, value in schema.items()}
    kind = schema.get("type")
    if isinstance(kind, str) and kind in _GEMINI_TYPES:
        result["type"] = kind.lower()
        if schema.get("nullable") is True:
            result["type"] = [kind.lower(), "null"]
    return result
