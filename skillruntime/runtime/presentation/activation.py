"""An activated skill as a model reads it, and the digests that tell one edition of it
from the next.
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
    """An activated skill: its instructions, its files, and what can be called of it.

    ``skill`` is that of the catalog, and None for a skill that is a function of the
    host alone.
    """

    name: str
    body: str
    contracts: Mapping[str, Contract]
    skill: Skill | None = None
    not_ready: Callable[[], Mapping[str, tuple[str, ...]]] = dict
    """Returns, by callable name, what its script lacks now: packages, variables,
    grants.
    """
    definition_tokens: int | None = None
    """The most tokens that the definitions of its tools may take in a request; None
    without a limit.
    """
    directory: SkillDirectory | None = None
    """Where it lies, if the model is shown that; see `with_directory`."""

    @classmethod
    def of_functions(cls, name: str, contracts: Mapping[str, Contract]) -> ActiveSkill:
        """Return the skill of functions without a SKILL.md: their descriptions are its
        instructions.
        """
        own = contracts.get(name)
        body = "" if own is None else own.description
        return cls(name, body, contracts)

    def resources(self) -> list[Resource]:
        """Return the files for a model to read."""
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
    to_tool_name: Callable[[str], str] = str,
    to_schema: Callable[[Contract], Mapping[str, Any]] | None = None,
) -> str:
    """Return an activated skill as a model reads it: the instructions, then the files,
    then the callable tools.

    *to_tool_name* gives the name under which the model calls a tool. With *to_schema*
    the schema of each tool's arguments is in the text, for models that call all of them
    through one tool.
    """
    # Instructions are words of the skill's author: only in this frame, and nothing
    # after it can look like a second one.
    parts = [framed("skill", active.body.strip(), name=active.name)]
    # Looked for in the bytes first: most skills state none, and reading the frontmatter
    # takes longer than all of this.
    if active.skill is not None and b"compatibility" in active.skill.data:
        compatibility = active.skill.frontmatter.compatibility
        if compatibility:
            parts.append(f"Compatibility: {compatibility}")
    if active.directory is not None:
        parts += active.directory.lines()
    resources = active.resources()
    if resources:
        parts.append(_FILES)
        if has_summary(resources):
            parts[-1] = _FILES_AND_DIRECTORIES
        parts += listed_lines(resources)
    if active.contracts:
        parts.append("Callable:")
        parts += _callable_lines(active, to_tool_name, to_schema)
    frame, *rest = parts
    # What follows the frame must not look like another one.
    return "\n".join([frame, *(without_tag("skill", line) for line in rest)])


_FILES = "Files, read with the skill's name and this path:"
_FILES_AND_DIRECTORIES = (
    "Files, read with the skill's name and this path; the path of a directory lists it:"
)


def _callable_lines(
    active: ActiveSkill,
    to_tool_name: Callable[[str], str],
    to_schema: Callable[[Contract], Mapping[str, Any]] | None,
) -> list[str]:
    """Return the definitions of what can be called, and the names of those for which
    there are not enough tokens.
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
    """Return the skill as a model is shown it: with the paths of *directory* in its
    instructions, and with the lines that name it.

    Digests are made of the skill without them.
    """
    if directory is None:
        return active
    body = directory.filled(active.body)
    return replace(active, body=body, directory=directory)


def with_arguments(active: ActiveSkill, arguments: str) -> ActiveSkill:
    """Return the skill as a person starts it: its instructions with what they typed
    after its name.

    ``$ARGUMENTS`` is all of it, ``$0`` or ``$ARGUMENTS[0]`` its first word as a shell
    splits it. A number without such a word stays, as in ``awk '{print $1}'``. Without
    any of these the arguments follow the instructions, as in Claude Code.

    >>> body = "Fix $0 in $1; awk '{print $9}' costs $1.50."
    >>> with_arguments(ActiveSkill("fix", body, {}), "12 'a b'").body
    "Fix 12 in a b; awk '{print $9}' costs $1.50."
    """
    import shlex  # only where a person starts a skill

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
_PLACE = re.compile(
    r"(?<![\\$\w])\$"
    r"(?:ARGUMENTS(?:\[(?P<index>\d{1,3})\]|\b)"
    r"|(?P<number>\d{1,3})(?!\w|[.,]\d))"
)


def within_tokens(texts: Mapping[str, str], limit: int | None) -> list[str]:
    """Return the names whose texts, taken in their order, have at most *limit* tokens
    together.
    """
    if limit is None:
        return list(texts)
    size = sum(len(text.encode("utf-8", "surrogatepass")) for text in texts.values())
    # A token has a byte at least.
    if size <= limit:
        return list(texts)
    # Tables of an encoding: only for skills with many tools.
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
    """Return what identifies this edition of the skill: a digest of its files, or of
    its functions' contracts.
    """
    if active.skill is not None:
        return active.skill.digest()  # of bytes: nothing is parsed or compiled for it
    contracts = {
        name: contract.to_dict() for name, contract in active.contracts.items()
    }
    return digest_of(f"{active.body}\0{as_text(contracts)}")


def digest_of(text: str) -> str:
    """Return 16 hexadecimal digits of the SHA-256 of *text*."""
    # surrogatepass: a SKILL.md may hold half of a surrogate pair, and a digest must not
    # raise for it.
    import hashlib  # OpenSSL: not needed for an import

    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def as_text(value: Any) -> str:
    """Return *value* as it counts against tokens: text itself, anything else as compact
    JSON.
    """
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    # A cycle, or keys that JSON does not have.
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
