"""Write the files that a model's own tools put below ``skill-files`` of the workspace:
copies of skills' files, and inputs for skills.

Law: nothing is written elsewhere, links are not followed, no part of a path begins with
a dot, and a file is replaced only if the call says so.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePosixPath

from skillruntime.catalog.file_opening import create_inside, read_inside, write_inside
from skillruntime.catalog.meant_path import plain_path
from skillruntime.catalog.visibility import is_visible, unescaped, visible_line
from skillruntime.errors import (
    ErrorCode,
    ResourceNotFoundError,
    SkillError,
    SkillInputError,
    ToolExecutionError,
)
from skillruntime.lazy_patterns import lazy_pattern
from skillruntime.runtime.files.own_directory import RESULTS
from skillruntime.runtime.files.skill_copy import safe_name
from skillruntime.runtime.files.workspace import Workspace

__all__ = ["MAX_COPIED_BYTES", "MAX_INPUT_BYTES", "copy_resource", "write_input"]

MAX_COPIED_BYTES = 64 * 1024**2
"""The largest file of a skill that is copied to the workspace."""

MAX_INPUT_BYTES = 1_000_000
"""The largest text that a model writes."""

_MOST_NAMES = 1_000
_MOST_PARTS = 60
"""The most parts of a path that a model writes: files more than 64 levels deep in the
workspace are not found.
"""

_DRIVE = lazy_pattern(r"[A-Za-z]:")
# Compiled code, which has no source that a person can read, by its name and by its
# first bytes: ELF, PE, Mach-O in its four forms, Java classes and universal binaries.
_COMPILED = frozenset(
    {".pyc", ".pyo", ".pyd", ".so", ".pth", ".jar", ".class", ".dll", ".dylib", ".exe"}
)
_COMPILED_STARTS = (
    b"\x7fELF",
    b"MZ",
    b"\xfe\xed\xfa\xce",
    b"\xfe\xed\xfa\xcf",
    b"\xce\xfa\xed\xfe",
    b"\xcf\xfa\xed\xfe",
    b"\xca\xfe\xba\xbe",
)


def copy_resource(workspace: Workspace, skill: str, path: str, data: bytes) -> str:
    """Write *data*, the file *path* of *skill*, to ``skill-files/NAME/PATH`` of
    *workspace*; return its path, relative to the workspace.

    An existing file stays: with the same bytes it counts as the copy, otherwise the
    copy is named ``name-2``.

    Raises:
        ResourceNotFoundError: the file is compiled code or hidden. ToolExecutionError:
            it cannot be written.
    """
    relative = PurePosixPath(path)
    is_compiled = relative.suffix.lower() in _COMPILED
    if is_compiled or data.startswith(_COMPILED_STARTS):
        raise _not_copied(path, "compiled code")
    if _is_hidden(relative.parts):
        raise _not_copied(path, "a hidden file")
    target = PurePosixPath(RESULTS, safe_name(skill), relative)
    directory = str(workspace.directory)
    for number in range(1, _MOST_NAMES):
        place = target
        if number > 1:
            place = target.with_stem(f"{target.stem}-{number}")
        try:
            create_inside(directory, str(place), data)
            workspace.note_placed(str(place))
            return str(place)
        except FileExistsError:
            with suppress(OSError):
                if read_inside(directory, str(place), len(data)) == data:
                    return str(place)
        except OSError as error:
            raise _not_written(str(place), error) from error
    raise ToolExecutionError(f"There are too many files named like {str(target)!r}")


def write_input(workspace: Workspace, path: str, text: str, *, overwrite: bool) -> str:
    """Write *text* to *path* below ``skill-files`` of *workspace*; return its path,
    relative to the workspace.

    Escapes in a text that the model copied from something it read are undone.

    Raises:
        SkillInputError: *path* leads elsewhere, has a part with a dot at its beginning,
            or is taken and not to be overwritten; or *text* is too large.
        ToolExecutionError: it cannot be written.
    """
    place = str(PurePosixPath(RESULTS, *_input_parts(workspace, path)))
    try:
        data = unescaped(text).encode()
    except UnicodeEncodeError:
        raise _refused("/text", "the text is not valid Unicode") from None
    if len(data) > MAX_INPUT_BYTES:
        raise _refused(
            "/text",
            f"the text has {len(data):,} bytes; at most {MAX_INPUT_BYTES:,} are "
            "written",
            action="Send less text, or several files",
        )
    write = create_inside
    if overwrite:
        write = write_inside
    try:
        write(str(workspace.directory), place, data)
    except FileExistsError:
        raise _refused(
            "/path",
            f"{place!r} exists",
            action="Send another path, or overwrite: true to replace the file",
        ) from None
    except OSError as error:
        raise _not_written(place, error) from error
    workspace.note_placed(place)
    return place


def _input_parts(workspace: Workspace, path: str) -> list[str]:
    """Return the parts of *path* below ``skill-files``; *path* may begin with
    ``skill-files`` or with the directory of the workspace.

    Raises:
        SkillInputError: *path* leads elsewhere, or a part begins with a dot.
    """
    plain = plain_path(path).replace("\\", "/").removeprefix("./")
    for root in (*workspace.roots, RESULTS):
        plain = plain.removeprefix(f"{root}/")
    parts = [part for part in plain.split("/") if part not in ("", ".")]
    is_elsewhere = plain.startswith(("/", "~")) or _DRIVE.match(plain) is not None
    if is_elsewhere or ".." in parts or not parts:
        raise _refused(
            "/path",
            f"{visible_line(path[:80])!r} is not a path below {RESULTS}/",
            action=f"Send a relative path, such as '{RESULTS}/input.csv'",
        )
    if len(parts) > _MOST_PARTS:
        raise _refused(
            "/path",
            f"The path has {len(parts):,} parts; it may have {_MOST_PARTS}",
            action=f"Send a shorter path, such as '{RESULTS}/input.csv'",
        )
    if _is_hidden(tuple(parts)) or not is_visible(plain) or not plain.isprintable():
        raise _refused(
            "/path",
            f"{visible_line(path[:80])!r} has a part that begins with a dot, or a "
            "hidden character",
            action=f"Send a plain path, such as '{RESULTS}/input.csv'",
        )
    return parts


def _is_hidden(parts: tuple[str, ...]) -> bool:
    """Return whether a part begins with a dot: such files configure what runs beside
    them.
    """
    return any(part.startswith(".") for part in parts)


def _not_copied(path: str, what: str) -> ResourceNotFoundError:
    return ResourceNotFoundError(
        f"{visible_line(path[:120])!r} is {what}, which is not copied to the workspace",
        suggested_action="Use another file of the skill",
        recoverable=False,
    )


def _refused(
    pointer: str, fault: str, *, action: str = "Send plain text"
) -> SkillInputError:
    error = SkillError(
        ErrorCode.INVALID_INPUT,
        f"{fault[0].upper()}{fault[1:]} - at {pointer}",
        recoverable=True,
        details={"path": pointer},
        suggested_action=action,
    )
    return SkillInputError("The file was not written", skill_errors=[error])


def _not_written(place: str, error: OSError) -> ToolExecutionError:
    reason = error.strerror or type(error).__name__
    return ToolExecutionError(
        f"{place!r} cannot be written: {reason}",
        suggested_action="Send another path, or tell the user",
    )
