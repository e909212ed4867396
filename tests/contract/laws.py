"""The laws of accepting, as functions of one generated case; `benchmarks/laws.py` tries
them on a hundred thousand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from jsonschema import FormatChecker
from jsonschema.validators import validator_for

from skillruntime.contract import Contract, Schema
from skillruntime.contract.repairs.scalars import number_in
from skillruntime.errors import SkillInputError
from tests.contract.generated import Case
from tests.contract.malformed import is_same
from tests.contract.templates import FORMS
from tests.contract.tool_shapes import KEEPING, VALUES, SiblingCase

ERRORS_PER_CASE = 8
_ESCAPED = re.compile(r"\\+u([0-9a-f]{4})")


def contract_of(case: Case) -> Contract:
    """Return a contract that accepts the schema of *case*."""
    return Contract.from_dict({"version": "1.0.0", "input": case.schema})


def valid_calls_come_back_untouched(case: Case) -> int:
    """A valid call is the same object, whatever its schema; its JSON text means the
    same.
    """
    contract = contract_of(case)

    accepted = contract.accept(case.value, fill_defaults=False)

    assert accepted.arguments is case.value
    assert accepted.repairs == ()
    for text in (
        json.dumps(case.value),
        json.dumps(case.value, ensure_ascii=False, indent=1),
    ):
        parsed = contract.accept(text, fill_defaults=False)
        assert is_same(parsed.arguments, case.value)
        assert parsed.repairs == ()
    return 3


def single_errors_are_undone_or_refused(case: Case) -> int:
    """One malformed part: the original comes back, or nothing; what comes back fits,
    and is accepted as it is.
    """
    contract, schema = contract_of(case), Schema(case.schema)
    reference = validator_for(case.schema)(case.schema, format_checker=FormatChecker())
    count = 0
    for kind, sent in case.errors(ERRORS_PER_CASE):
        if sent == json.dumps(case.value) or (
            isinstance(sent, dict) and schema.is_valid(sent)
        ):
            continue  # no error by this schema
        count += 1
        before = json.dumps(sent)
        try:
            accepted = contract.accept(sent, fill_defaults=False)
        except SkillInputError as error:
            assert error.to_errors(), kind
            continue
        finally:
            assert json.dumps(sent) == before, "the value that was sent has changed"
        assert is_same(accepted.arguments, case.value), (kind, sent, accepted)
        assert accepted.repairs, kind
        assert reference.is_valid(accepted.arguments), (kind, sent, accepted)
        again = contract.accept(accepted.arguments, fill_defaults=False)
        assert again.arguments is accepted.arguments
        _check_scalars(case, sent, accepted.arguments)
    return count


def one_error_in_all_members_is_undone_or_refused(case: Case) -> int:
    """The same error in every member of a call, of tools in the shapes of MCP servers
    and of open schemas of any kind: the original comes back, or nothing; what is valid
    as it was sent is untouched, and a key that may mean a parameter is named.
    """
    count = 0
    for tool in (
        SiblingCase.of(case.seed * 3),
        SiblingCase.of(case.seed * 3 + 1),
        SiblingCase.of(case.seed * 3 + 2, case),
    ):
        if tool is None:
            continue
        contract = Contract.from_dict({"input": tool.schema}, name=TOOL)
        for kind, values, sent in tool.errors(ERRORS_PER_CASE):
            count += 1
            try:
                accepted = contract.accept(sent, fill_defaults=False)
            except SkillInputError as error:
                assert error.to_errors(), kind
                continue
            if contract.input.is_valid(sent):
                rules = {repair.rule for repair in accepted.repairs}
                assert rules <= {"whole-number"}, (tool.tool, kind, sent)
                assert is_same(accepted.arguments, sent), (tool.tool, kind, sent)
                renamed = _keys(tool.value) - _keys(sent)
                assert bool(renamed) <= bool(accepted.warnings), (kind, sent)
                continue
            said = (tool.tool, kind, values, sent, accepted)
            kept = list(_kept(tool.value, accepted.arguments, values))
            assert None not in kept, said
            if values is not None and "quotes" in values and kept:
                # None of them has lost its quotes.
                rules = {repair.rule for repair in accepted.repairs}
                assert rules <= {"key-name", "wrapper-object"}, said
    return count


def _kept(value: Any, result: Any, error: str | None) -> Iterator[str | None]:
    """Yield the texts of *result* that fit with the *error*, and were left as they were
    sent; ``None`` where it differs from *value* otherwise.
    """
    if isinstance(value, dict) and isinstance(result, dict):
        if value.keys() != result.keys():
            yield None
            return
        for key, member in value.items():
            yield from _kept(member, result[key], error)
    elif isinstance(value, list) and isinstance(result, list):
        if len(value) != len(result):
            yield None
            return
        for item, other in zip(value, result, strict=True):
            yield from _kept(item, other, error)
    elif not is_same(value, result):
        is_kept = error in KEEPING and VALUES[error](value) == result
        yield result if is_kept else None


def _keys(value: Any) -> set[str]:
    """Return the keys of all objects in *value*."""
    keys: set[str] = set()
    if isinstance(value, dict):
        keys |= value.keys()
        for member in value.values():
            keys |= _keys(member)
    elif isinstance(value, list):
        for item in value:
            keys |= _keys(item)
    return keys


def cut_calls_are_refused_or_whole(case: Case) -> int:
    """A cut of a call's text is refused or whole, if the caller does not say that the
    model had finished.
    """
    contract, random = contract_of(case), Random(case.seed)
    texts = [
        json.dumps(case.value),
        repr(case.value),
        json.dumps(json.dumps(case.value)),
    ]
    texts.append(f"```json\n{texts[0]}\n```")
    count = 0
    for text in texts:
        for end in sorted(random.sample(range(1, len(text)), min(12, len(text) - 1))):
            if not text[:end].strip():
                continue
            count += 1
            try:
                accepted = contract.accept(text[:end], fill_defaults=False)
            except SkillInputError:
                continue
            assert is_same(accepted.arguments, case.value), (text[:end], accepted)
    return count


def only_our_errors_come_out(case: Case) -> int:
    """Whatever is sent, by any policy: arguments that fit, or an error that can be
    written as JSON.
    """
    contract, schema, random = (
        contract_of(case),
        Schema(case.schema),
        Random(case.seed + 2),
    )
    count = 0
    for sent in _anything(case, random):
        for policy in ("safe", "lenient", "strict"):
            count += 1
            try:
                accepted = contract.accept(sent, policy=policy)
            except SkillInputError as error:
                json.dumps(error.to_response()).encode()
                continue
            assert schema.is_valid(accepted.arguments), (policy, sent, accepted)
    return count


def calls_in_a_template_are_whole_or_refused(case: Case) -> int:
    """In each model's form, with prose or reasoning around it: the original, or
    nothing; another tool's call never.
    """
    contract, random = (
        Contract.from_dict({"input": case.schema}, name=TOOL),
        Random(case.seed + 3),
    )
    count = 0
    for form, render in FORMS.items():
        for name, value in (
            (TOOL, case.value),
            (OTHER, case.value),
            (TOOL, _opened(case)),
        ):
            text = random.choice(AROUND).replace("CALL", render(name, value))
            count += 1
            try:
                accepted = contract.accept(text, fill_defaults=False)
            except SkillInputError:
                continue
            assert name == TOOL, (form, text, accepted)
            assert is_same(accepted.arguments, value), (form, text, accepted)
    return count


def envelopes_are_calls_and_not_arguments(case: Case) -> int:
    """A provider's form in a text, also where the schema takes any key: the call of
    this tool, or nothing.
    """
    open_schema = {
        key: value
        for key, value in case.schema.items()
        if key != "additionalProperties"
    }
    count = 0
    for schema in (case.schema, open_schema):
        contract = Contract.from_dict({"input": schema}, name=TOOL)
        for name in (TOOL, OTHER, f"mcp__server__{TOOL}"):
            for sent in _envelopes(name, case.value):
                count += 1
                try:
                    accepted = contract.accept(json.dumps(sent), fill_defaults=False)
                except SkillInputError:
                    continue
                assert name != OTHER, (sent, accepted)
                assert is_same(accepted.arguments, case.value), (sent, accepted)
    return count


TOOL, OTHER = "find_it", "send_it"
AROUND = (
    "CALL",
    "CALL\n",
    "I look it up.\n\nCALL",
    "<think>\nMaybe {x}.\n</think>\n\nCALL",
    "CALL<|im_end|>",
)


def _opened(case: Case) -> dict[str, Any]:
    """Return the value of *case* with a name beside it, where its schema takes any."""
    if "additionalProperties" in case.schema:
        return case.value
    return {**case.value, "remark": "a <b> & c", "more": [1, {"x": "y"}]}


def _envelopes(name: str, value: dict[str, Any]) -> list[Any]:
    return [
        {"name": name, "arguments": value},
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(value)},
        },
        {"tool_calls": [{"function": {"name": name, "arguments": value}}]},
        {"functionCall": {"name": name, "args": value}},
        {"type": "tool_use", "id": "toolu_1", "name": name, "input": value},
        {"recipient_name": f"functions.{name}", "parameters": value},
        {"action": name, "action_input": value},
    ]


LAWS: tuple[Callable[[Case], int], ...] = (
    valid_calls_come_back_untouched,
    single_errors_are_undone_or_refused,
    one_error_in_all_members_is_undone_or_refused,
    cut_calls_are_refused_or_whole,
    only_our_errors_come_out,
    calls_in_a_template_are_whole_or_refused,
    envelopes_are_calls_and_not_arguments,
)


def _anything(case: Case, random: Random) -> Iterator[Any]:
    """Yield values that have little to do with the schema: parts of the call in each
    other's places, and odd ones.
    """
    parts = [
        case.value,
        *case.value.values(),
        None,
        float("nan"),
        10**400,
        b"\xff",
        {1, 2},
        "\ud800",
        [],
        "[" * 300,
    ]
    for name in case.schema["properties"]:
        yield {**case.value, name: random.choice(parts)}
    deep: Any = 1
    for _ in range(random.choice((105, 400, 2000))):
        deep = [deep]
    yield {**case.value, "zz": deep}
    text = json.dumps(case.value)
    cut = random.randrange(len(text))
    yield (
        text[:cut]
        + random.choice(["}", '"', ",", "\\", "\x00", "[", ":", " "])
        + text[cut + 1 :]
    )
    yield random.choice(parts)


def _check_scalars(case: Case, sent: Any, result: Any) -> None:
    """Check that each scalar of *result* was sent, or is one of the schema, or a
    conversion of one that was sent.
    """
    known = list(_scalars(sent))
    texts = {str(each) for each in known if isinstance(each, str)} | {
        json.dumps(each) for each in known
    }
    whole = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), "\n".join(texts))
    allowed = json.dumps(case.schema, ensure_ascii=False)
    for scalar in _scalars(result):
        written = json.dumps(scalar, ensure_ascii=False)
        if any(is_same(scalar, each) for each in known) or written in allowed:
            continue
        if isinstance(scalar, str):
            bare = scalar.replace(
                "\\", ""
            )  # the backslashes of a string in a string are gone
            assert scalar in whole or bare in whole.replace("\\", ""), scalar
        elif isinstance(scalar, bool) or scalar is None:
            is_written = str(scalar).casefold() in whole.casefold() or written in whole
            assert is_written or scalar in (0, 1), scalar
        else:
            numbers = [number_in(text, whole=False) for text in texts] + [
                number_in(text, whole=True) for text in texts
            ]
            assert scalar in numbers or str(scalar) in whole, scalar


def _scalars(value: Any) -> Iterator[Any]:
    match value:
        case dict():
            for member in value.values():
                yield from _scalars(member)
        case list():
            for item in value:
                yield from _scalars(item)
        case _:
            yield value
