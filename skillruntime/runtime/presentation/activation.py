"""Render an activated skill for a model, and compute the digests that distinguish its
editions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.resources import Resource
from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import framed, visible_line, without_tag
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.presentation.file_listing import has_summary, listed_lines
from skillruntime.runtime.presentation.skill_directory import SkillDirectory

if TYPE_CHECKING:
    from skillruntime.contract.contract import Contract

__all__ = [
    "ActiveSkill",
    "as_text",
    "digest_of",
    "fingerprint",
    "identity_of",
    "render_activation",
    "with_arguments",
    "with_directory",
    "within_tokens",
]


@dataclass(frozen=True, slots=True)
class ActiveSkill:
    """An activated skill: its instructions, its files and its callables.

    ``skill`` is the catalog's skill; None for a skill that consists only of functions
    of the host.
    """

    name: str
    body: str
    contracts: Mapping[str, Contract]
    skill: Skill | None = None
    not_ready: Callable[[], Mapping[str, tuple[str, ...]]] = dict
    """Returns the packages, variables and grants that the script of a callable, given
    by name, lacks now.
    """
    definition_tokens: int | None = None
    """The most tokens that the definitions of its tools may take in a request; None
    without a limit.
    """
    directory: SkillDirectory | None = None
    """The skill's directory, if the model is shown it; see `with_directory`."""

    @classmethod
    def of_functions(cls, name: str, contracts: Mapping[str, Contract]) -> ActiveSkill:
        """Return the skill of functions without a SKILL.md: their descriptions are its
        instructions.
        """
        own = contracts.get(name)
        body = "" if own is None else own.description
        return cls(name, body, contracts)

    def resources(self) -> list[Resource]:
        """Return the paths of the files that a model may read."""
        if self.skill is None:
            return []
        resources = self.skill.resources()
        if not self.contracts:
            return resources
        # A script with a contract is called, not read: its source would cost the model
        # thousands of tokens for nothing.
        return [item for item in resources if not item.path.startswith("scripts/")]


def render_activation(
    active: ActiveSkill,
    to_tool_name: Callable[[str], str],
    to_schema: Callable[[Contract], Mapping[str, Any]] | None = None,
) -> str:
    """Render an activated skill for a model: the instructions, then the files, then the
    callable tools.

    *to_tool_name* returns the name under which the model calls a tool. With *to_schema*
    the text includes the schema of each tool's arguments, for models that call all
    tools through one.
    """
    # The author's instructions stand only in this frame, and later text cannot look
    # like a second frame.
    parts = [framed("skill", active.body.strip(), name=active.name)]
    # Search the bytes first: most skills do not state any, and parsing the frontmatter
    # takes longer than the rest of this function.
    if active.skill is not None and b"compatibility" in active.skill.data:
        compatibility = active.skill.frontmatter.compatibility
        if compatibility:
            parts.append(f"Compatibility: {compatibility}")
    if active.directory is not None:
        parts += active.directory.lines()
    resources = [file for file in active.resources() if not _is_for_authors(file)]
    if resources:
        parts.append(_FILES)
        if has_summary(resources):
            parts[-1] = _FILES_AND_DIRECTORIES
        parts += listed_lines(resources)
    if active.contracts:
        parts.append("Callable:")
        parts += _callable_lines(active, to_tool_name, to_schema)
    frame, *rest = parts
    # The text after the frame must not look like another frame.
    return "\n".join([frame, *(without_tag("skill", line) for line in rest)])


# The files with which an author tests a skill; reading them would only cost a model
# tokens.
_FOR_AUTHORS = frozenset({"evals", "test", "tests"})


def _is_for_authors(file: Resource) -> bool:
    return file.path.partition("/")[0] in _FOR_AUTHORS


_FILES = "Files, read with the skill's name and this path:"
_FILES_AND_DIRECTORIES = (
    "Files, read with the skill's name and this path; the path of a directory lists it:"
)


def _callable_lines(
    active: ActiveSkill,
    to_tool_name: Callable[[str], str],
    to_schema: Callable[[Contract], Mapping[str, Any]] | None,
) -> list[str]:
    """Return the definitions of the callable tools, and the names of those that do not
    fit into the tokens.
    """
    lacking = active.not_ready()
    definitions: dict[str, str] = {}
    for name, contract in active.contracts.items():
        lines = [f"- {to_tool_name(name)}: {visible_line(contract.description)}"]
        if name in lacking:
            lines.append(f"  not ready: {visible_line('; '.join(lacking[name]))}")
        if to_schema is not None:
            lines.append(f"  arguments: {as_text(to_schema(contract))}")
        definitions[name] = "\n".join(lines)
    shown = within_tokens(definitions, active.definition_tokens)
    shown_lines = [definitions[name] for name in shown]
    left_out = [to_tool_name(name) for name in definitions if name not in shown]
    if left_out:
        names = ", ".join(left_out[:_MOST_NAMES])
        if len(left_out) > _MOST_NAMES:
            names += f" and {len(left_out) - _MOST_NAMES:,} more"
        shown_lines.append(f"More, by name with call_skill: {names}")
    return shown_lines


_MOST_NAMES = 100


def with_directory(
    active: ActiveSkill, directory: SkillDirectory | None
) -> ActiveSkill:
    """Return the skill with the paths of *directory* in its instructions, and with the
    lines that name the directory.

    Digests are computed without them.
    """
    if directory is None:
        return active
    body = directory.filled(active.body)
    return replace(active, body=body, directory=directory)


def with_arguments(active: ActiveSkill, arguments: str) -> ActiveSkill:
    """Return the skill as started by a person: its instructions with the text that the
    person typed after its name.

    ``$ARGUMENTS`` is the complete text, ``$0`` or ``$ARGUMENTS[0]`` its first word as a
    shell splits it. A number beyond the last word stays, as in ``awk '{print $1}'``.
    Without any of these the arguments follow the instructions, as in Claude Code.

    >>> body = "Fix $0 in $1; awk '{print $9}' costs $1.50."
    >>> with_arguments(ActiveSkill("fix", body, {}), "12 'a b'").body
    "Fix 12 in a b; awk '{print $9}' costs $1.50."
    """
    import shlex  # only needed when a person starts a skill

    try:
        words = shlex.split(arguments)
    except ValueError:  # a quote that is not closed
        words = arguments.split()

    def fill(place: re.Match[str]) -> str:
        number = place["index"] or place["number"]
        if number is None:
            return arguments
        if int(number) >= len(words):
            return place[0]
        return words[int(number)]

    body = _PLACE.sub(fill, active.body)
    if arguments and body == active.body:
        body = f"{body}\n\nARGUMENTS: {arguments}"
    return replace(active, body=body)


# Not a price ($1.50), a variable of a shell script ($10k) or an escaped sign.
_PLACE = lazy_pattern(
    r"(?<![\\$\w])\$"
    r"(?:ARGUMENTS(?:\[(?P<index>\d{1,3})\]|\b)"
    r"|(?P<number>\d{1,3})(?!\w|[.,]\d))"
)


def within_tokens(texts: Mapping[str, str], limit: int | None) -> list[str]:
    """Return the first names whose texts together have at most *limit* tokens."""
    if limit is None:
        return list(texts)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
    # A token has at least one byte.
    if size <= limit:
        return list(texts)
    # Imports the tables of an encoding: only for skills with many tools.
    from skillruntime.tokens.counter import count

    names: list[str] = []
    left = limit
    for name, text in texts.items():
        left -= count(text).tokens
        if left < 0:
            break
        names.append(name)
    return names


def fingerprint(active: ActiveSkill) -> str:
    """Return the digest that identifies this edition of the skill: of its files, or of
    its functions' contracts.
    """
    if active.skill is not None:
        return active.skill.digest()  # of bytes: no parsing
    contracts = {
        name: contract.to_dict() for name, contract in active.contracts.items()
    }
    return digest_of(f"{active.body}\0{as_text(contracts)}")


def digest_of(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of *text*."""
    # surrogatepass: a SKILL.md may hold half of a surrogate pair, which must not raise
    # an exception here.
    import hashlib  # OpenSSL: not needed for an import

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_text(value: Any) -> str:
    """Return the text of *value* whose tokens count: a string itself, anything else as
    compact JSON.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # A cycle, or keys that JSON does not allow.
    except (TypeError, ValueError, RecursionError):
        return repr(type(value))


def identity_of(name: str, arguments: Any, version: str | None) -> str:
    """Return a digest that is equal for two calls with equal name, arguments and
    version.
    """
    text = arguments
    if not isinstance(arguments, str):
        try:
            text = json.dumps(arguments, sort_keys=True, default=repr)
        except (TypeError, ValueError, RecursionError):
            text = repr(type(arguments))
    import hashlib  # OpenSSL: not needed for an import

    identity = repr((name, version, text)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(identity).hexdigest()
