"""Where a skill lies: the variables by which its own texts and scripts name its
directory.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["DIRECTORY_VARIABLES", "PLUGIN_VARIABLE", "directory_variables"]

DIRECTORY_VARIABLES = ("CLAUDE_SKILL_DIR", "SKILL_DIR", "SKILL_ROOT")
"""The names that clients of the format give the skill's directory."""

PLUGIN_VARIABLE = "CLAUDE_PLUGIN_ROOT"
"""The directory of the plugin that brings the skill (Claude Code)."""

_PLUGIN_MARK = ".claude-plugin"


def directory_variables(directory: Path, *, looks_above: bool) -> dict[str, str]:
    """Return the variables that name *directory*, an absolute path, and its plugin.

    The plugin is the nearest directory with ``.claude-plugin/``, from *directory* up.
    Without *looks_above* only *directory* itself is looked at: what lies around the
    copy of a skill is not the skill's.
    """
    variables = dict.fromkeys(DIRECTORY_VARIABLES, str(directory))
    candidates = [directory]
    if looks_above:
        candidates += directory.parents
    for candidate in candidates:
        if (candidate / _PLUGIN_MARK).is_dir():
            variables[PLUGIN_VARIABLE] = str(candidate)
            break
    return variables
