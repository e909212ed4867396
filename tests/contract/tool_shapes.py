"""Tools in the shapes that MCP servers have, open as their SDKs write them, and calls
of them in which every member has the same error.

All follows from one seed: ``SiblingCase.of(seed)``. The schemas are written for this
purpose; they copy no server's.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Any

import jsonschema_rs

from tests.contract.generated import DEFINITIONS, Case, make_value

TEXT: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}
FREE: dict[str, Any] = {"type": "object"}


def _tool(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required.split()}


def _array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _choice(*members: str) -> dict[str, Any]:
    return {"type": "string", "enum": list(members)}


def _optional(schema: Any) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


_DATE = {"type": "string", "format": "date"}
TOOLS: dict[str, dict[str, Any]] = {
    "read a file": _tool("file_path", file_path=TEXT, head=INTEGER, tail=INTEGER),
    "write a file": _tool(
        "file_path content",
        file_path=TEXT,
        content=TEXT,
        dry_run=BOOLEAN,
        create_parents=BOOLEAN,
    ),
    "edit a file": _tool(
        "file_path edits",
        file_path=TEXT,
        edits=_array(_tool("old_text new_text", old_text=TEXT, new_text=TEXT)),
        dry_run=BOOLEAN,
    ),
    "list files": _tool(
        "",
        start_path=TEXT,
        exclude_patterns=_array(TEXT),
        sort_by=_choice("name", "size", "last_modified"),
    ),
    "search": _tool(
        "query",
        query=TEXT,
        max_results=INTEGER,
        include_domains=_array(TEXT),
        search_depth=_choice("basic", "advanced"),
        time_range=_optional(_choice("day", "week", "month")),
    ),
    "fetch": _tool(
        "url",
        url=TEXT,
        max_length={**INTEGER, "minimum": 1},
        start_index=INTEGER,
        raw=BOOLEAN,
        request_headers={"type": "object", "additionalProperties": TEXT},
    ),
    "open an issue": _tool(
        "repo_owner repo_name title",
        repo_owner=TEXT,
        repo_name=TEXT,
        title=TEXT,
        body=TEXT,
        label_names=_array(TEXT),
        milestone_number=INTEGER,
    ),
    "list issues": _tool(
        "repo_owner repo_name",
        repo_owner=TEXT,
        repo_name=TEXT,
        state=_choice("open", "closed", "all"),
        sort_by=_choice("created", "updated"),
        per_page={**INTEGER, "maximum": 100},
        page=INTEGER,
        since_date=_DATE,
    ),
    "send a message": _tool(
        "channel_id text",
        channel_id=TEXT,
        text=TEXT,
        thread_ts=_optional(TEXT),
        unfurl_links=BOOLEAN,
        reply_broadcast=BOOLEAN,
    ),
    "query a database": _tool(
        "sql", sql=TEXT, query_params=_array({}), row_limit=INTEGER, read_only=BOOLEAN
    ),
    "insert rows": _tool(
        "table_name rows",
        table_name=TEXT,
        rows=_array(_tool("row_id", row_id=INTEGER, unit_price=NUMBER, item_name=TEXT)),
        on_conflict=_choice("ignore", "replace", "do_nothing"),
    ),
    "add nodes": _tool(
        "entities",
        entities=_array(
            _tool(
                "entity_name entity_type",
                entity_name=TEXT,
                entity_type=TEXT,
                is_active=BOOLEAN,
                observations=_array(TEXT),
            )
        ),
    ),
    "click": _tool(
        "element_ref",
        element_ref=TEXT,
        double_click=BOOLEAN,
        mouse_button=_choice("left", "right", "middle"),
        modifier_keys=_array(_choice("Alt", "Control", "Shift")),
    ),
    "take a picture": _tool(
        "",
        full_page=BOOLEAN,
        image_format=_choice("png", "jpeg"),
        clip_area=_tool("x_pos y_pos", x_pos=NUMBER, y_pos=NUMBER, clip_width=NUMBER),
    ),
    "plan an event": _tool(
        "event_title start_date",
        event_title=TEXT,
        start_date=_DATE,
        end_date=_DATE,
        attendees=_array(_tool("email", email=TEXT, is_optional=BOOLEAN)),
        send_updates=_choice("all", "external_only", "none"),
    ),
    "think": _tool(
        "thought thought_number next_needed",
        thought=TEXT,
        thought_number={**INTEGER, "minimum": 1},
        next_needed=BOOLEAN,
        branch_id=TEXT,
        revises_thought=_optional(INTEGER),
    ),
    "make a page": _tool(
        "parent_id",
        parent_id=TEXT,
        page_properties={"type": "object", "additionalProperties": TEXT},
        page_icon={"anyOf": [_tool("emoji_name", emoji_name=TEXT), TEXT]},
    ),
    "limit or all": _tool(
        "list_id",
        list_id=TEXT,
        row_limit={"anyOf": [INTEGER, _choice("all")]},
        sort_key={"type": ["string", "null"]},
    ),
    # Tools that call other tools.
    "call a tool": _tool("tool_name arguments", tool_name=TEXT, arguments=FREE),
    "run a tool": _tool("name", name=TEXT, arguments=FREE, timeout_ms=INTEGER),
    "run actions": _tool(
        "actions",
        actions=_array(_tool("action_name", action_name=TEXT, input=FREE)),
        stop_on_error=BOOLEAN,
    ),
    "execute": _tool(
        "server_name tool_name",
        server_name=TEXT,
        tool_name=TEXT,
        tool_input=FREE,
        is_confirmed=BOOLEAN,
    ),
    "batch": _tool(
        "calls",
        calls=_array(_tool("name", name=TEXT, parameters=FREE, call_id=INTEGER)),
        max_parallel=INTEGER,
    ),
}
ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"filePath": "a.txt", "dryRun": True},
    {"max_results": 5, "query": "x"},
    {"name": "inner", "arguments": {"a": "1"}},
    {"Tool-Name": "x", "count": "5"},
    {"input": {"value": "'x'"}},
]
"""What a free object holds: data, whatever it looks like."""

_PARTS = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")


def _parts(name: str) -> list[str]:
    return [part.casefold() for part in _PARTS.findall(name)]


def _camel(name: str) -> str:
    first, *rest = _parts(name) or [name]
    return first + "".join(map(str.capitalize, rest))


SPELLINGS: dict[str, Callable[[str], str]] = {
    "camel": _camel,
    "pascal": lambda name: "".join(map(str.capitalize, _parts(name))),
    "snake": lambda name: "_".join(_parts(name)),
    "kebab": lambda name: "-".join(_parts(name)),
    "capitals": lambda name: "_".join(_parts(name)).upper(),
}


def _in_quotes(mark: str) -> Callable[[Any], Any]:
    def quoted(value: Any) -> Any:
        return f"{mark}{value}{mark}" if isinstance(value, str) else value

    return quoted


def _number_in_string(value: Any) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return json.dumps(value) if is_number else value


def _scalar_in_string(value: Any) -> Any:
    return value if isinstance(value, str | None) else str(value)


def _all_in_quotes(value: Any) -> Any:
    return value if value is None else f"'{value}'"


def _is_word(value: Any) -> bool:
    """Whether *value* is a text, and not a word for nothing in any case."""
    return isinstance(value, str) and value.casefold() not in ("", "none", "null")


VALUES: dict[str, Callable[[Any], Any]] = {
    "single quotes": _in_quotes("'"),
    "double quotes": _in_quotes('"'),
    "numbers in strings": _number_in_string,
    "scalars in strings": _scalar_in_string,
    "scalars in quotes": _all_in_quotes,
    "capitals": lambda value: value.upper() if _is_word(value) else value,
}
KEEPING = frozenset({"single quotes", "double quotes", "scalars in quotes", "capitals"})
"""The errors that are made in texts too, which may fit with them."""


@dataclass(frozen=True, slots=True)
class SiblingCase:
    """A tool's schema, and a call that fits it."""

    seed: int
    tool: str
    schema: dict[str, Any]
    value: dict[str, Any]

    @classmethod
    def of(cls, seed: int, case: Case | None = None) -> SiblingCase | None:
        """Return the case of *seed*: of a tool, or of the schema of *case* left open;
        ``None`` where no value was found.
        """
        random = Random(seed)
        if case is None:
            tool = random.choice(sorted(TOOLS))
            spelling = SPELLINGS[random.choice(["camel", "snake", "snake", "kebab"])]
            schema = _varied(TOOLS[tool], random, spelling)
        else:
            tool = "generated"
            schema = copy.deepcopy(case.schema)
            if schema.get("additionalProperties") is False:
                del schema["additionalProperties"]
        for _ in range(20):
            value = make_value(random, schema, DEFINITIONS)
            value = _with_data([schema], value, random)
            if _is_valid(schema, value):
                return cls(seed, tool, schema, value)
        return None

    def errors(self, count: int) -> Iterator[tuple[str, str | None, Any]]:
        """Yield up to *count* calls with one error in all members, or in some of them:
        the errors in keys and in values, and the call.
        """
        random = Random(self.seed + 1)
        for _ in range(count):
            keys = random.choice([None, *SPELLINGS])
            values = random.choice([None, None, *VALUES])
            share = random.choice([1.0, 1.0, 1.0, 0.5])
            if keys is None and values is None:
                continue
            error = _Error(
                SPELLINGS[keys] if keys else str,
                VALUES[values] if values else lambda value: value,
                values is None or values in KEEPING,
                share,
                random,
            )
            try:
                sent = error.made_in_members([self.schema], self.value)
            except LookupError:
                continue
            yield f"keys {keys}, share {share}", values, sent


@dataclass(frozen=True, slots=True)
class _Error:
    """One error in keys and one in values, made in a *share* of the members.

    Without *keeping*, a value that still fits is left as it was.
    """

    rename: Callable[[str], str]
    convert: Callable[[Any], Any]
    keeping: bool
    share: float
    random: Random

    def made_in(self, schemas: list[Any], value: Any) -> Any:
        """Return *value*, which *schemas* describe, with the error.

        Raises:
            LookupError: a key would be another one.
        """
        if isinstance(value, dict):
            made: Any = self.made_in_members(schemas, value)
        elif isinstance(value, list):
            described = _describing(schemas, value)
            made = [
                self.made_in(_items(described, index), item)
                for index, item in enumerate(value)
            ]
        elif schemas and self.is_made():
            made = self.convert(value)
        else:
            return value
        still_fits = bool(schemas) and all(_is_valid(each, made) for each in schemas)
        return value if still_fits and not self.keeping else made

    def made_in_members(
        self, schemas: list[Any], value: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the object *value* with the error in its members."""
        described = _describing(schemas, value)
        # Another branch of the union may declare the new name.
        possible = _possible(schemas)
        members: dict[str, Any] = {}
        for key, member in value.items():
            below = _declared(described, key)
            name = self.rename(key) if below and self.is_made() else key
            is_taken = name in value or bool(_declared(possible, name))
            if name in members or (name != key and is_taken):
                raise LookupError(name)
            members[name] = self.made_in(below or _rest(described), member)
        return members

    def is_made(self) -> bool:
        return self.random.random() < self.share


def _varied(
    schema: Any, random: Random, spelling: Callable[[str], str], depth: int = 0
) -> Any:
    """Return *schema* with its names in another *spelling*, other requirements, and its
    objects open or closed.
    """
    if isinstance(schema, list):
        return [_varied(item, random, spelling, depth) for item in schema]
    if not isinstance(schema, dict):
        return schema
    varied = {
        key: _varied(member, random, spelling, depth + 1)
        for key, member in schema.items()
        if key not in ("properties", "required")
    }
    if "properties" not in schema:
        return varied
    varied["properties"] = {
        spelling(name): _varied(member, random, spelling, depth + 1)
        for name, member in schema["properties"].items()
    }
    required = [name for name in schema["required"] if random.random() < 0.8]
    others = schema["properties"].keys() - schema["required"]
    required += [name for name in sorted(others) if random.random() < 0.1]
    varied["required"] = [spelling(name) for name in required]
    rest = random.choice([None] * 6 + [True, {}, False, False])
    if rest is not None:
        varied["additionalProperties"] = rest
    return varied


def _with_data(schemas: list[Any], value: Any, random: Random) -> Any:
    """Return *value* with something in its free objects."""
    described = _describing(schemas, value)
    if isinstance(value, list):
        return [
            _with_data(_items(described, index), item, random)
            for index, item in enumerate(value)
        ]
    if not isinstance(value, dict):
        return value
    if any(schema == FREE for schema in described):
        return copy.deepcopy(random.choice(ARGUMENTS))
    return {
        key: _with_data(_declared(described, key) or _rest(described), member, random)
        for key, member in value.items()
    }


def _describing(schemas: list[Any], value: Any) -> list[dict[str, Any]]:
    """Return the subschemas that judge *value* itself, of unions the branches that it
    fits.
    """
    return [schema for schema in _possible(schemas) if _is_valid(schema, value)]


def _possible(schemas: list[Any]) -> list[dict[str, Any]]:
    """Return *schemas* and all branches of their unions."""
    found: list[dict[str, Any]] = []
    for schema in schemas:
        if not isinstance(schema, dict):
            continue
        if "$ref" in schema:
            found += _possible([DEFINITIONS[schema["$ref"].rsplit("/", 1)[1]]])
            continue
        found.append(schema)
        for keyword in ("anyOf", "oneOf"):
            found += _possible(schema.get(keyword, []))
    return found


def _declared(described: list[dict[str, Any]], name: str) -> list[Any]:
    return [
        schema["properties"][name]
        for schema in described
        if name in schema.get("properties", {})
    ]


def _rest(described: list[dict[str, Any]]) -> list[Any]:
    rests = [schema.get("additionalProperties") for schema in described]
    return [rest for rest in rests if isinstance(rest, dict) and rest]


def _items(described: list[dict[str, Any]], index: int) -> list[Any]:
    items: list[Any] = []
    for schema in described:
        prefix = schema.get("prefixItems", [])
        if index < len(prefix):
            items.append(prefix[index])
        elif "items" in schema:
            items.append(schema["items"])
    return items


def _is_valid(schema: Any, value: Any) -> bool:
    return bool(_validator(json.dumps(schema)).is_valid(value))


@lru_cache(4096)
def _validator(schema: str) -> Any:
    document = json.loads(schema)
    if isinstance(document, dict):
        document.setdefault("$defs", DEFINITIONS)
    return jsonschema_rs.validator_for(document, validate_formats=True)
