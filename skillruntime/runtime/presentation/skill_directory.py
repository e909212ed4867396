"""Name the directory of a skill: the variables for it in the skill's own texts and
scripts, and the lines that a model is shown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from skillruntime.catalog.visibility import visible_line
from skillruntime.lazy_patterns import lazy_pattern

if TYPE_CHECKING:
    from skillruntime.catalog.skill import SkillMetadata

__all__ = [
    "DIRECTORY_VARIABLES",
    "SkillDirectory",
    "directory_variables",
    "shown_directory",
]

DIRECTORY_VARIABLES = ("CLAUDE_SKILL_DIR", "SKILL_DIR", "SKILL_ROOT")
"""The variables that clients of the format use for the skill's directory."""

# Claude Code's variables for the plugin that contains the skill.
_PLUGIN_VARIABLE = "CLAUDE_PLUGIN_ROOT"
_PLUGIN_MARK = ".claude-plugin"
_PLACEHOLDER = "baseDir"  # only in texts, between braces

_NAMES = "|".join((*DIRECTORY_VARIABLES, _PLUGIN_VARIABLE))
# `{baseDir}`, `${NAME}` and `$NAME`, with the path behind it: 1,446 of 34,434 published
# SKILL.md have such a form. `${baseDir}` and `{{baseDir}}` belong to other languages. A
# point at the end of the path ends the sentence.
_PATH = lazy_pattern(
    r"(?<![\\${])"
    rf"(?:\{{({_PLACEHOLDER})\}}(?!\}})|\$\{{({_NAMES})\}}|\$({_NAMES})(?!\w))"
    r"((?:/(?:\.*+[\w@+=~-]++)++)*+/?)"
)
_ASSIGNED = lazy_pattern(rf"(?<![\w$.{{-])({_PLACEHOLDER}|{_NAMES})[ \t]*[:?]?=(?!=)")


@dataclass(frozen=True, slots=True)
class SkillDirectory:
    """The paths of a trusted skill and of the workspace on this machine, for a model
    that has a shell here.

    ``variables`` are those of `directory_variables`.
    """

    directory: Path
    workspace: Path
    variables: Mapping[str, str]

    def lines(self) -> list[str]:
        """Return the lines for the model that name both."""
        return [
            f"Directory: {visible_line(str(self.directory))}",
            f"Workspace: {visible_line(str(self.workspace))}",
        ]

    def filled(self, text: str) -> str:
        """Return *text* of the skill with its variables replaced by paths, quoted if a
        path has a blank.

        A variable that the text itself assigns stays.

        >>> place = SkillDirectory(Path("/a b"), Path("/work"), {"SKILL_DIR": "/a b"})
        >>> place.filled("Run {baseDir}/run.sh or `$SKILL_DIR/run.py`.")
        "Run '/a b/run.sh' or `'/a b/run.py'`."
        """
        paths = {_PLACEHOLDER: str(self.directory), **self.variables}
        for name in _ASSIGNED.findall(text):
            paths.pop(name, None)

        parts = []
        end = 0
        line = ""
        for found in _PATH.finditer(text):
            between = text[end : found.start()]
            parts.append(between)
            end = found.end()
            # The text of the line before the variable shows whether it is in quotes.
            line = _quotes_of(line + between)
            name = found[1] or found[2] or found[3]
            if name not in paths:
                parts.append(found[0])
                continue
            path = paths[name] + found[4]
            if " " in path and not line:
                path = f"'{path}'"
            parts.append(path)
            line = line.removesuffix("'")
        parts.append(text[end:])
        return "".join(parts)

    def unfilled(self, text: str) -> str:
        """Return *text*, which a model was shown, without the paths of this machine, so
        that its digest is the same wherever the skill and the workspace lie.
        """
        names = {path: name for name, path in self.variables.items()}
        names |= {str(self.directory): _PLACEHOLDER, str(self.workspace): "workspace"}
        # The longest first, because one path may be inside another.
        longest_first = sorted(names, key=len, reverse=True)
        paths = "|".join(map(re.escape, longest_first))
        # Not in the middle of another path: "/a" in "/scripts/ab".
        whole = re.compile(rf"(?<![\w.-])(?:{paths})(?![\w-])")
        return whole.sub(lambda found: f"{{{names[found[0]]}}}", text)


def directory_variables(directory: Path, *, looks_above: bool) -> dict[str, str]:
    """Return the variables that name *directory*, an absolute path, and its plugin.

    The plugin is the nearest directory with ``.claude-plugin/``, from *directory* up.
    Without *looks_above* only *directory* itself is searched: the directories around
    the copy of a skill do not belong to the skill.
    """
    variables = dict.fromkeys(DIRECTORY_VARIABLES, str(directory))
    candidates = [directory]
    if looks_above:
        candidates += directory.parents
    for candidate in candidates:
        if (candidate / _PLUGIN_MARK).is_dir():
            variables[_PLUGIN_VARIABLE] = str(candidate)
            break
    return variables


def shown_directory(
    metadata: SkillMetadata | None, workspace: Path | None
) -> SkillDirectory | None:
    """Return the skill's directory for a model; None for an untrusted skill, and if
    *workspace* is not shown either.
    """
    if metadata is None or workspace is None or not metadata.trusted:
        return None
    directory = metadata.directory.resolve()
    variables = directory_variables(directory, looks_above=True)
    return SkillDirectory(directory, workspace, variables)


def _quotes_of(text: str) -> str:
    """Return the quotes that are open at the end of *text*, in its last line. An
    apostrophe is not a quote, so ``'`` counts only at the very end.
    """
    line = text[text.rfind("\n") + 1 :]
    quotes = '"' * (line.count('"') % 2)
    if line.endswith("'"):
        quotes += "'"
    return quotes
