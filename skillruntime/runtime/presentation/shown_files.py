"""Show a model a file of a skill, or one that a skill made, in a frame that the file
cannot close or imitate.

Text is shown without hidden characters, an image goes beside the text, and any other
file of a skill is copied to the workspace, so that the model can name it in a call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import PurePath

from skillruntime.catalog.file_opening import FileTooLargeError, read_inside
from skillruntime.catalog.meant_path import meant_path
from skillruntime.catalog.resources import (
    MAX_RESOURCE_BYTES,
    Resource,
    decode_text,
    is_text,
    media_type,
)
from skillruntime.catalog.skill import Skill
from skillruntime.catalog.visibility import (
    PRIVATE_USE,
    framed,
    framed_visible,
    hidden_characters,
    listed_kinds,
    visible_line,
    visible_text,
)
from skillruntime.errors import ResourceNotFoundError
from skillruntime.runtime.files.images import image_type
from skillruntime.runtime.files.own_directory import RESULTS
from skillruntime.runtime.files.skill_files import MAX_COPIED_BYTES, copy_resource
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.presentation.file_listing import listed_lines
from skillruntime.runtime.presentation.skill_directory import SkillDirectory

__all__ = ["ShownFile", "find_made", "show_directory", "show_made", "show_resource"]

_FRAME = "skill_resource"


@dataclass(frozen=True, slots=True)
class ShownFile:
    """The text about a file that a model reads. For an image, ``path`` is its path, and
    ``skill`` the skill that it belongs to, unless it lies in the workspace.
    """

    text: str
    image: Mapping[str, str] | None = None


def show_resource(
    skill: Skill, path: str, workspace: Workspace, directory: SkillDirectory | None
) -> ShownFile:
    """Return the file *path* of *skill*: its text with the paths of *directory* or, for
    any other file, the path of its copy in *workspace*.

    Raises:
        ResourceNotFoundError: the skill has no such file, or the file is compiled code.
        ToolExecutionError: the copy cannot be written.
    """
    data = skill.read_resource_bytes(path, limit=MAX_COPIED_BYTES)
    kind = image_type(data)
    if kind is None and len(data) <= MAX_RESOURCE_BYTES and is_text(data):
        written = decode_text(data, path)
        if directory is not None:
            written = directory.filled(written)
        text = _framed_text(written, path, skill.name, is_trusted=skill.trusted)
        return ShownFile(text)
    copy = copy_resource(workspace, skill.name, path, data)
    if kind is not None:
        text = _IMAGE.format(kind, len(data), copy)
        image = {"skill": skill.name, "path": path}
        return ShownFile(_framed(text, path, skill.name), image)
    text = _COPY.format(media_type(path), len(data), copy)
    return ShownFile(_framed(text, path, skill.name))


_IMAGE = (
    "An image ({}, {:,} bytes), copied to {} of the workspace. Where the model takes "
    "images, it comes with this answer unless it is too large."
)
_COPY = (
    "Not a text to read ({}, {:,} bytes); copied to {} of the workspace. Pass that "
    "path to what can read such files."
)


def show_directory(skill: Skill, directory: str) -> ShownFile:
    """Return the list of the files below *directory* of *skill*, ``""`` for its own."""
    below = f"{directory}/" if directory else ""
    files: list[Resource] = []
    for file in skill.resources():
        if file.path.startswith(below):
            files.append(file)
    lines = listed_lines(files, below, all_own=True)
    return ShownFile(_framed("\n".join(lines), below or "./", skill.name))


def find_made(workspace: Workspace, path: str, made: Collection[str]) -> str | None:
    """Return the one of the *made* files of *workspace* that *path* means; None if
    there is not exactly one.
    """
    return meant_path(path, made, workspace.roots)


def show_made(workspace: Workspace, path: str, trusted: Collection[str]) -> ShownFile:
    """Return the file *path* of *workspace*, which a skill made or the model wrote;
    *trusted* are the names of the trusted skills.

    Raises:
        ResourceNotFoundError: the file no longer exists, is reached through a link, is
            too large, or is neither text nor an image.
    """
    try:
        data = read_inside(str(workspace.directory), path, MAX_RESOURCE_BYTES)
    except FileTooLargeError as error:
        raise ResourceNotFoundError(
            f"{path!r} has {error.size:,} bytes; at most {MAX_RESOURCE_BYTES:,} can be "
            "read",
            suggested_action="Pass its path to a tool that can read such files",
            recoverable=False,
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a valid path"
        raise ResourceNotFoundError(
            f"{path!r} cannot be read in the workspace: {reason}"
        ) from None
    kind = image_type(data)
    if kind is not None:
        text = _MADE_IMAGE.format(kind, len(data))
        return ShownFile(_framed(text, path), {"path": path})
    is_trusted = _is_trusted(workspace, path, trusted)
    return ShownFile(_framed_text(decode_text(data, path), path, is_trusted=is_trusted))


_MADE_IMAGE = (
    "An image ({}, {:,} bytes). Where the model takes images, it comes with this "
    "answer unless it is too large."
)


def _is_trusted(workspace: Workspace, path: str, trusted: Collection[str]) -> bool:
    """Return whether the file *path* cannot come from an untrusted script. Files of
    such a script are copied below ``skill-files/NAME``, unless it works in the
    workspace itself.
    """
    if workspace.has_untrusted_files:
        return False
    first, *others = PurePath(path).parts
    if first != RESULTS or len(others) < 2:
        return True
    return others[0] in trusted


def _framed_text(written: str, path: str, skill: str = "", *, is_trusted: bool) -> str:
    """Return *written* in a frame that says which hidden characters were removed; so
    does a warning in the log.

    Characters for private use stay in a trusted text: bullets of a document have such
    ones, and a model that edits the text writes it back.
    """
    removed = {}
    hidden = hidden_characters(written)
    if is_trusted:
        hidden.pop(PRIVATE_USE, None)
    if hidden:
        import logging

        removed = {"removed": listed_kinds(hidden)}
        logging.getLogger("skillruntime.runtime").warning(
            "%s has %s; removed",
            visible_line("/".join(filter(None, [skill, path]))),
            removed["removed"],
        )
    text = visible_text(written.removesuffix("\n"), private_use=is_trusted)
    named = {"skill": skill} if skill else {}
    return framed_visible(_FRAME, text, **named, path=path, **removed)


def _framed(text: str, path: str, skill: str = "") -> str:
    named = {"skill": skill} if skill else {}
    return framed(_FRAME, text, **named, path=path)
