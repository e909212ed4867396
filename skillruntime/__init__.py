"""The typed layer for Agent Skills: load them cheaply, enforce their contracts, run them, answer in one envelope.

Every public name resolves at its first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from skillruntime.catalog.catalog import SkillCatalog
    from skillruntime.catalog.discovery import discover
    from skillruntime.catalog.skill import Skill, SkillMetadata
    from skillruntime.contract.coercion import Policy, Repair
    from skillruntime.contract.contract import Accepted, Contract
    from skillruntime.contract.migration import Migration
    from skillruntime.contract.response import SkillResponse, handle_skill_error
    from skillruntime.contract.schema import Schema
    from skillruntime.contract.validator import SkillInputValidator
    from skillruntime.contract.versions import Version, VersionRange, check_skill_compatibility
    from skillruntime.diagnostic import Diagnostic, Severity
    from skillruntime.errors import (
        AccessDeniedError,
        ErrorCode,
        IncompatibleRuntimeError,
        InvalidSkillError,
        RateLimitError,
        ResourceNotFoundError,
        SkillError,
        SkillInputError,
        SkillNotFoundError,
        SkillOutputError,
        SkillRuntimeError,
        ToolExecutionError,
        ToolNotAvailableError,
        ToolTimeoutError,
        TruncatedInputError,
        UnsupportedVersionError,
    )
    from skillruntime.runtime.runners import CallContext
    from skillruntime.runtime.runtime import SkillRuntime
    from skillruntime.runtime.session import SkillSession

__version__ = "0.1.0"

_HOMES = {
    "catalog.catalog": ("SkillCatalog",),
    "catalog.discovery": ("discover",),
    "catalog.skill": ("Skill", "SkillMetadata"),
    "contract.coercion": ("Policy", "Repair"),
    "contract.contract": ("Accepted", "Contract"),
    "contract.migration": ("Migration",),
    "contract.response": ("SkillResponse", "handle_skill_error"),
    "contract.schema": ("Schema",),
    "contract.validator": ("SkillInputValidator",),
    "contract.versions": ("Version", "VersionRange", "check_skill_compatibility"),
    "diagnostic": ("Diagnostic", "Severity"),
    "errors": (
        *("AccessDeniedError", "ErrorCode", "IncompatibleRuntimeError", "InvalidSkillError", "RateLimitError"),
        *("ResourceNotFoundError", "SkillError", "SkillInputError", "SkillNotFoundError", "SkillOutputError"),
        *("SkillRuntimeError", "ToolExecutionError", "ToolNotAvailableError", "ToolTimeoutError"),
        *("TruncatedInputError", "UnsupportedVersionError"),
    ),
    "runtime.runners": ("CallContext",),
    "runtime.runtime": ("SkillRuntime",),
    "runtime.session": ("SkillSession",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [  # noqa: PLE0604 - the table above is the list
    "__version__",
    *_HOME_OF,
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
