"""Read the `descriptor.json` next to a SKILL.md."""

from __future__ import annotations

from pathlib import Path

from skillruntime.catalog.file_opening import read_inside
from skillruntime.catalog.skill import Skill
from skillruntime.catalog.unforeseen import refusing_unforeseen
from skillruntime.errors import InvalidSkillError
from skillruntime.remote.descriptor import SkillDescriptor
from skillruntime.remote.protocol import MessageError, parse_json

__all__ = ["read_descriptor_file"]

_MAX_BYTES = 1024 * 1024  # as for a contract


def read_descriptor_file(skill: Skill) -> SkillDescriptor | None:
    """Return the descriptor.json of a skill; None if the skill has no such file.

    Raises: InvalidSkillError: the file is invalid.
    """
    path = Path(skill.directory) / "descriptor.json"
    try:
        # As for every file of a skill: links are not followed, FIFOs are not waited
        # for, and larger files are not read.
        data = read_inside(
            str(skill.directory), "descriptor.json", _MAX_BYTES, identity=skill.identity
        )
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidSkillError(f"{path} cannot be read: {error.strerror}") from None
    try:
        # As strict as with a message of the network: a third party wrote it, and its
        # depth or a name that appears twice must neither end the process nor be read in
        # two ways.
        document = parse_json(data)
    except MessageError as error:
        raise InvalidSkillError(
            f"{path} is not JSON: {error.violations[0]['actual']}"
        ) from None
    with refusing_unforeseen(str(path)):
        return SkillDescriptor.from_dict(document)
