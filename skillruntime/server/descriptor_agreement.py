"""Whether a descriptor.json promises what the contract beside it enforces. No I/O."""

from __future__ import annotations

from typing import Any

from skillruntime.compatibility.containment import Containment
from skillruntime.contract.contract import Contract
from skillruntime.contract.versions import Version
from skillruntime.errors import InvalidSkillError
from skillruntime.remote.descriptor import SkillDescriptor
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION

__all__ = ["check_agreement", "is_spoken"]


def is_spoken(written: SkillDescriptor) -> bool:
    """Whether a descriptor.json is for the protocol that this server speaks."""
    # Compatible is the same MAJOR (section 8); the version that is published is the server's own.
    return Version.parse(written.protocol.version).major == Version.parse(PROTOCOL_VERSION).major


def check_agreement(written: SkillDescriptor, contract: Contract) -> None:
    """Check that a descriptor.json promises what the contract next to it enforces.

    Raises:
        InvalidSkillError: they differ; the message names where.
    """
    # What is published is what is enforced: a caller must never be refused for what the descriptor promises.
    differences = [] if contract.version in (None, written.version) else ["version"]
    asked = contract.input.document
    if isinstance(asked, dict):
        promised = written.input_schema()
        differences += _differing_inputs(promised, asked)
        if sorted(promised.get("required", [])) != sorted(asked.get("required", [])):
            differences.append("required inputs")
    if written.output.schema is not None and _breaks_promise(written.output.schema, contract):
        differences.append("output")
    if differences:
        message = f"The descriptor.json and the contract of {contract.name} differ in {', '.join(differences)}"
        raise InvalidSkillError(message, details={"differences": differences})


def _breaks_promise(promised: Any, contract: Contract) -> bool:
    """Whether the contract certainly lets outputs through that the descriptor does not promise."""
    if contract.output is None:
        return promised not in (True, {})
    try:
        return Containment().answer(promised, contract.output.document) == "no"
    except ImportError:  # undecided without the fast engine; what is published of the output is the contract's own
        return False


def _differing_inputs(promised: dict[str, Any], enforced: dict[str, Any]) -> list[str]:
    theirs, ours = promised.get("properties", {}), enforced.get("properties", {})
    return [
        f"inputs/{name}" for name in sorted({*theirs, *ours}) if _essence(theirs.get(name)) != _essence(ours.get(name))
    ]


def _essence(schema: Any) -> Any:
    """What a schema asks for, without what it only says."""
    spoken = ("title", "description", "examples", "$comment")
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if name not in spoken}
