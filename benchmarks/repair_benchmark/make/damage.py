"""Make cases by program: ``python make/damage.py DIRECTORY`` adds what is new to
``data/generated.jsonl`` and ``data/tools.jsonl``.

The cases are valid calls of real tools' schemas, and one error in each. The schemas are
fetched into DIRECTORY. The errors are those of ``tests/contract/generated.py``, where
the call that was meant is known, and what must be refused: a call without something
that is required, a number with a word. Of a text that was cut off the whole is known,
so an engine that restores it is right too. An error after which the call is still valid
is left out, since no engine could see it.

Running the benchmark does not need this program: the cases are stored, and those that
are stored are never made again.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import jsonschema_rs

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[2])]

from repair_benchmark.cases import DATA, REFUSE, rows, tools  # noqa: E402
from repair_benchmark.ids import digest, record  # noqa: E402
from schemas import fetched  # noqa: E402

from tests.contract.generated import Case, make_value, places, replaced  # noqa: E402

CALLS_A_TOOL = 8
ERRORS_A_CALL = 6
LARGEST = 2**53 - 1
"""The largest integer that every JSON parser reads exactly (RFC 7493, section 2.2)."""
FORMATS = {
    "uri": "https://example.com/a",
    "date-time": "2026-01-31T09:30:00Z",
    "email": "ana@example.com",
}
ESCAPED_LETTER = re.compile(r"\\++u((?!00[0-7]|d[89a-f])[0-9a-f]{4})")
"""The escape of a character beyond ASCII that is not half of a surrogate pair."""
FOR_PEOPLE = {"description", "title", "examples", "$comment", "$schema"}
"""What a schema says to people. It is not copied, since no engine repairs by it."""


def main() -> None:
    """Add the cases that are not stored yet."""
    stored = rows("generated")
    known = {digest(case) for case in stored}
    known_tools = {each["key"] for each in tools()}
    new_tools, new_cases = [], []
    for row in fetched(Path(sys.argv[1]).resolve()):
        key = f"{row['server']}/{row['tool']}"
        schema = without_texts(row["schema"])
        if not schema.get("properties"):
            continue
        if key not in known_tools:
            known_tools.add(key)
            new_tools.append(
                {
                    "key": key,
                    "server": row["server"],
                    "version": row["version"],
                    "schema": schema,
                }
            )
        for case in cases(key, schema):
            found = digest({**case, "schema": schema})
            if found not in known:
                known.add(found)
                number = len(stored) + len(new_cases) + 1
                new_cases.append({"id": f"generated {number:04}", **case})
    _append("tools", new_tools)
    _append("generated", new_cases)
    record()


def cases(key: str, schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the cases for the tool *key* with *schema*: the same ones at each run."""
    is_valid = jsonschema_rs.validator_for(schema).is_valid
    is_meant = jsonschema_rs.validator_for(schema, validate_formats=True).is_valid
    seeds = Random(key)
    made = {"tool": key.split("/", 1)[1], "schema": key}
    for _ in range(CALLS_A_TOOL):
        seed = seeds.randrange(2**32)
        value = _call(Random(seed), schema, is_meant)
        if value is None:
            continue
        yield {**made, "kind": "valid", "payload": value, "answer": value}
        errors = Case(seed, schema, value).errors(ERRORS_A_CALL)
        for kind, payload in errors:
            payload = _as_written(payload)
            if not _is_still_valid(payload, is_valid):
                yield {**made, "kind": kind, "payload": payload, "answer": value}
        for case in _refused(Random(seed), schema, value):
            if not _is_still_valid(case["payload"], is_valid):
                yield {**made, **case}


def without_texts(schema: Any) -> Any:
    """Return *schema* without what it says to people; names of properties stay."""
    if isinstance(schema, list):
        return [without_texts(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {}
    for key, member in schema.items():
        if key == "properties":
            kept[key] = {name: without_texts(each) for name, each in member.items()}
        elif key in ("default", "enum", "const"):
            kept[key] = member
        elif key not in FOR_PEOPLE:
            kept[key] = without_texts(member)
    return kept


def _call(
    random: Random, schema: dict[str, Any], is_valid: Any
) -> dict[str, Any] | None:
    for _ in range(30):
        value: dict[str, Any] = make_value(random, schema, {})
        value = _declared(value, schema)
        if value and is_valid(value) and not _is_too_large(value):
            return value
    return None


def _declared(value: Any, schema: Any) -> Any:
    """Return *value* without the keys that *schema* does not declare, which test
    nothing, and with texts of the formats that it declares.
    """
    if not isinstance(schema, dict):
        return value
    if isinstance(value, list):
        return [_declared(item, schema.get("items")) for item in value]
    if isinstance(value, dict) and "properties" in schema:
        members = schema["properties"]
        return {
            name: _declared(each, members[name])
            for name, each in value.items()
            if name in members
        }
    return FORMATS.get(schema.get("format"), value)


def _is_too_large(value: Any) -> bool:
    numbers = [_at(value, path) for path in places(value)]
    return any(type(each) is int and abs(each) > LARGEST for each in numbers)


def _as_written(payload: Any) -> Any:
    """Return *payload*, if it is a text, with letters in place of their escapes: models
    write letters.
    """
    if not isinstance(payload, str):
        return payload
    return ESCAPED_LETTER.sub(lambda found: chr(int(found[1], 16)), payload)


def _is_still_valid(payload: Any, is_valid: Any) -> bool:
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except ValueError:
            return False
    return bool(is_valid(payload))


def _refused(
    random: Random, schema: dict[str, Any], value: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    required = [name for name in schema.get("required", ()) if name in value]
    if required:
        name = random.choice(required)
        if "default" not in schema["properties"][name]:
            payload = {key: each for key, each in value.items() if key != name}
            yield {"kind": "missing", "payload": payload, "answer": REFUSE}
    numbers = [path for path in places(value) if type(_at(value, path)) in (int, float)]
    if numbers:
        path = random.choice(numbers)
        payload = replaced(value, path, f"{_at(value, path)} items")
        yield {"kind": "number with a word", "payload": payload, "answer": REFUSE}
    text = json.dumps(value, ensure_ascii=False)
    if len(text) > 8:
        yield {
            "kind": "cut off",
            "payload": text[: random.randint(2, len(text) - 2)],
            "finish_reason": "length",
            "answer": value,
            "or_refuse": True,
        }


def _at(value: Any, path: Any) -> Any:
    for part in path:
        value = value[part]
    return value


def _append(file: str, new: list[dict[str, Any]]) -> None:
    with (DATA / f"{file}.jsonl").open("a", encoding="utf-8") as written:
        for each in new:
            written.write(json.dumps(each, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
