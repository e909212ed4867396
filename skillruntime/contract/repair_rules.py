"""Define the rules of repair: their ids and their properties, in one table.

A rule's id is public: it is in the record of each repair, and has a row in the page
"What is repaired and what is refused". Code writes the constant, never the id.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["rewrites", "moves", "omits"]
"""The effect of a repair on the value, which other readings of a call must know.

``rewrites``: the value keeps its meaning in another form. ``moves``: the value goes
into or out of a container. ``omits``: something is left out or made up, so that the
repair says nothing about the version that the arguments were written for.
"""


@dataclass(frozen=True, slots=True)
class RepairRule:
    """One rule: its id, the error that it repairs, its effect, and the advice
    (*advise*) that a tool's description may give against the error.

    If *keeps_text*, the repaired text is one that the caller sent, in another form;
    otherwise the contract supplies it.
    """

    id: str
    summary: str
    effect: Effect | None = None
    advice: str | None = None
    keeps_text: bool = True


RULES: dict[str, RepairRule] = {}
"""Every rule by its id."""


def _rule(
    rule: str,
    summary: str,
    effect: Effect | None = None,
    advice: str | None = None,
    *,
    keeps_text: bool = True,
) -> str:
    RULES[rule] = RepairRule(rule, summary, effect, advice, keeps_text)
    return rule


def rules_that(effect: Effect) -> frozenset[str]:
    """Return the ids of the rules that have the *effect*.

    >>> "number-text" in rules_that("rewrites")
    True
    """
    return frozenset(rule.id for rule in RULES.values() if rule.effect == effect)


# Scalars.
NUMBER_TEXT = _rule(
    "number-text", "A number in a string.", "rewrites", "without quotes"
)
BOOLEAN_TEXT = _rule(
    "boolean-text", "A boolean in a string.", "rewrites", "without quotes"
)
NUMBER_FOR_TEXT = _rule("number-for-text", "A number where a string is asked for.")
NULL_TEXT = _rule("null-text", "A word for null in a string.", "omits")
WHOLE_NUMBER = _rule("whole-number", "A float without a fraction for an integer.")
ENUM_VALUE = _rule(
    "enum-value",
    "A member of an enum in another form.",
    advice="written exactly so",
    keeps_text=False,
)

# Containers.
CONTAINER_TEXT = _rule(
    "container-text", "An array or object in a string.", advice="not inside a string"
)
COMMA_LIST = _rule("comma-list", "The items of an array, with commas.", "moves")
SCALAR_FOR_ARRAY = _rule(
    "scalar-for-array", "One item for an array.", "moves", "also for a single item"
)
ARRAY_OF_ONE = _rule(
    "array-of-one", "An array of one item for the item.", "moves", "not in an array"
)
ARRAY_OBJECT = _rule("array-object", "An object in place of an array.", "moves")
SCHEMA_ECHO = _rule("schema-echo", "A value in the form of its schema.", "moves")
WRAPPER_OBJECT = _rule("wrapper-object", "An object around all arguments.", "moves")
EMPTY_ARGUMENTS = _rule("empty-arguments", "An empty array for no arguments.")

# Keys.
KEY_NAME = _rule("key-name", "A declared key in another form.")
ALIAS = _rule("alias", "Another name that the contract declares.", keeps_text=False)
UNKNOWN_KEY = _rule("unknown-key", "A key that is not declared, left out.", "omits")
NULL_OPTIONAL = _rule("null-optional", "Null for an optional property.", "omits")
DEFAULT = _rule(
    "default", "The default of a required property.", "omits", keeps_text=False
)

# Files.
PATH_SPELLING = _rule("path-spelling", "The path of a file in another spelling.")

# The text of a call.
SWALLOWED_PARAMETER = _rule(
    "swallowed-parameter", "The next parameters at the end of a text."
)
MARKDOWN_FENCE = _rule("markdown-fence", "A fence around the object.")
TEXT_AROUND = _rule("text-around", "Marks or prose around the object.")
CALL_TEMPLATE = _rule("call-template", "A call in a model's chat template.")
PYTHON_CALL = _rule("python-call", "A call as Python writes it.")
ESCAPED_SPACE = _rule("escaped-space", "An escaped line break between two tokens.")
TRAILING_COMMA = _rule("trailing-comma", "A comma after the last member.")
COMMENT = _rule("comment", "A comment between two tokens.")
SINGLE_QUOTES = _rule(
    "single-quotes",
    "A string in quotes that JSON does not have, or in a second pair.",
    "rewrites",
)
UNQUOTED_KEY = _rule("unquoted-key", "A key without quotes.")
PYTHON_LITERAL = _rule("python-literal", "Python's True, False or None.")
ESCAPED_QUOTE = _rule("escaped-quote", "A backslash before a string's own quotes.")
CONTROL_CHARACTER = _rule("control-character", "A line break or tab in a string.")
PLAIN_BACKSLASH = _rule("plain-backslash", "A backslash that JSON does not know.")
DOUBLE_ENCODING = _rule("double-encoding", "The whole object as a JSON string.")
UNCLOSED_OBJECT = _rule("unclosed-object", "The last closing brace is missing.")
STRAY_BRACKET = _rule("stray-bracket", "A bracket too many at the end.")
REPEATED_OBJECT = _rule("repeated-object", "One object written several times.")
EMPTY_OBJECT = _rule("empty-object", "An empty object before the object.")
EMPTY_TEXT = _rule("empty-text", "No text, for no arguments.")
