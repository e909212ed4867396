"""Read the `descriptor.json` next to a SKILL.md."""

from __future__ import annotations

import json
from pathlib import Path

from skillruntime.catalog.skill import Skill
from skillruntime.errors import InvalidSkillError
from skillruntime.remote.descriptor import SkillDescriptor

__all__ = ["read_descriptor_file"]


def read_descriptor_file(skill: Skill) -> SkillDescriptor | None:
    """Return the descriptor.json of a skill; None where it has none.

    Raises:
        InvalidSkillError: it has one, and it is invalid.
    """
    path = Path(skill.directory) / "descriptor.json"
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSkillError(f"{path} cannot be read: {error}") from None
    try:
        document = json.loads(text)
    except ValueError as error:
        raise InvalidSkillError(f"{path} is not JSON: {error}") from None
    return SkillDescriptor.from_dict(document)
