"""Read the typed arguments of a call: one JSON object, stdin, a file, or key=value
words.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from skillruntime.errors import SkillInputError

__all__ = ["read_arguments"]

# A word without one of these cannot hold an object in any form.
_JSON = set("{}[]\"'`")


def read_arguments(arguments: tuple[str, ...]) -> Any:
    """Return the arguments as the runtime takes them: raw text, or a mapping of
    strings.

    Raises:
        SkillInputError: a single word is neither a JSON object nor key=value.
    """
    if not arguments:
        return {}
    if len(arguments) == 1:
        # One word is key=value only if "=" comes before any brace: {"formula": "a=b"}
        # is JSON.
        only = arguments[0]
        if only == "-":
            return sys.stdin.read()
        if only.startswith("@"):
            return _file(only[1:])
        if "=" not in only.partition("{")[0]:
            if not _JSON & set(only) and only.strip() not in ("", "null", "None"):
                action = "Give one JSON object in quotes, or key=value words"
                raise SkillInputError(
                    f"{only!r} is neither a JSON object nor key=value",
                    suggested_action=action,
                )
            return only
    values: dict[str, list[str]] = {}
    for word in arguments:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise click.UsageError(
                f"{word!r} is not key=value. Give one JSON object in quotes, or only "
                "key=value words."
            )
        values.setdefault(key, []).append(value)
    # A repeated key is a list: tag=a tag=b. The contract refuses the list if it does
    # not fit.
    collected: dict[str, Any] = {}
    for key, given in values.items():
        collected[key] = given[0] if len(given) == 1 else given
    return collected


def _file(path: str) -> str:
    try:
        return Path(path).read_text("utf-8")
    except OSError as error:
        raise click.UsageError(
            f"The file {path!r} cannot be read: {error.strerror or error}"
        ) from error
    except UnicodeDecodeError as error:
        raise click.UsageError(
            f"The file {path!r} is not text in UTF-8: {error.reason}"
        ) from error
