"""Describe in a script's answer which files of the workspace the untrusted script did
not get.

Otherwise a script may report that there are no files although it only did not see them.
"""

from __future__ import annotations

from skillruntime.contract.schemas.pointer import WHOLE_SCHEMA
from skillruntime.contract.schemas.subschemas import declared_properties
from skillruntime.runtime.call import Prepared
from skillruntime.runtime.files.named_files import NamedFiles
from skillruntime.runtime.files.own_directory import CallFiles
from skillruntime.runtime.files.skill_copy import SkillCopy
from skillruntime.runtime.grants import Grants, how_to_grant
from skillruntime.runtime.scripts.refusals import named_dotfiles

__all__ = ["LeftOut"]

_MOST_DOTFILES = 3  # the most that a warning names if the script names none
_NO_FILES = (
    "The script saw no file of the workspace: it has no parameter that could name one"
)
_FEW_FILES = (
    "The command that the call gives the script saw no file of the workspace that the "
    "call does not name"
)


class LeftOut:
    """The files of the workspace that a call did not get, and the answer's sentence
    about them.

    *grants* are all grants of the call, because a sentence that grants more replaces
    them.
    """

    def __init__(
        self, prepared: Prepared, skill: str, grants: Grants, code: SkillCopy
    ) -> None:
        self._prepared = prepared
        self._skill = skill
        self._grants = grants
        script = code.script(str(prepared.target.contract.run["script"]))
        self._source = script.read_bytes()
        self._reason: str | None = None

    def note(self, named: NamedFiles) -> None:
        """Record which of the *named* files were left out, and whether the script may
        work on more files than those.
        """
        if warnings := named.warnings(self._with_dotfiles):
            self._prepared.execution["warnings"] = warnings
        files = self._prepared.workspace
        if isinstance(files, CallFiles):
            self._reason = _why_unseen(self._prepared, files, named)
            if self._reason is not None:
                dotfiles = named_dotfiles(files.workspace.dotfiles, self._source)
                files.unseen = Grants(dotfiles=dotfiles, files=(".",))

    def note_unseen(self) -> None:
        """Record that the script may work on more files than it saw."""
        if self._reason is None:
            return
        unseen = self._prepared.workspace.uncopied([])
        how = how_to_grant(self._skill, self._grants | unseen)
        warnings = self._prepared.execution.setdefault("warnings", [])
        warnings.append(f"{self._reason}. {how}")

    def _with_dotfiles(self, dotfiles: tuple[str, ...]) -> str:
        likely = named_dotfiles(dotfiles, self._source) or dotfiles[:_MOST_DOTFILES]
        return how_to_grant(self._skill, self._grants | Grants(dotfiles=likely))


def _why_unseen(prepared: Prepared, files: CallFiles, named: NamedFiles) -> str | None:
    """Return why the script may have seen too little of the workspace, which is not
    empty; None if the arguments name the files that it works on.
    """
    workspace = files.workspace
    if workspace.given is None or not any(workspace.directory.iterdir()):
        return None
    if any(copied.path == "." for copied in named.copied):
        return None
    contract = prepared.target.contract
    if not declared_properties(contract.input.references, [WHOLE_SCHEMA]):
        return None if named.copied else _NO_FILES
    # "For command line utilities that dispatch to other command line utilities" (the
    # reference of argparse, REMAINDER): a command reads more than its words name.
    line = contract.run.get("command_line", {})
    for parameter in line.get("parameters", ()):
        is_sent = bool(prepared.arguments.get(parameter["name"]))
        if parameter.get("takes") == "rest" and is_sent:
            return _FEW_FILES
    return None
