"""The typed layer for Agent Skills: load them cheaply, enforce their contracts, run them, answer in one envelope.

Every public name resolves at its first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for readers and type checkers; at run time the names resolve by the table below
    from skillruntime.catalog.catalog import SkillCatalog as SkillCatalog
    from skillruntime.catalog.discovery import discover as discover
    from skillruntime.catalog.skill import Skill as Skill
    from skillruntime.catalog.skill import SkillMetadata as SkillMetadata
    from skillruntime.compatibility.comparison import Verdict as Verdict
    from skillruntime.compatibility.comparison import compare as compare
    from skillruntime.contract.coercion.coercion import Policy as Policy
    from skillruntime.contract.coercion.coercion import Repair as Repair
    from skillruntime.contract.contract import Accepted as Accepted
    from skillruntime.contract.contract import Contract as Contract
    from skillruntime.contract.input_validator import SkillInputValidator as SkillInputValidator
    from skillruntime.contract.migration.migration import Migration as Migration
    from skillruntime.contract.response import SkillResponse as SkillResponse
    from skillruntime.contract.response import handle_skill_error as handle_skill_error
    from skillruntime.contract.schema import Schema as Schema
    from skillruntime.contract.versions import Version as Version
    from skillruntime.contract.versions import VersionRange as VersionRange
    from skillruntime.contract.versions import check_skill_compatibility as check_skill_compatibility
    from skillruntime.derive import Derivation as Derivation
    from skillruntime.derive import derive as derive
    from skillruntime.diagnostic import Diagnostic as Diagnostic
    from skillruntime.diagnostic import Severity as Severity
    from skillruntime.errors import AccessDeniedError as AccessDeniedError
    from skillruntime.errors import ErrorCode as ErrorCode
    from skillruntime.errors import IncompatibleRuntimeError as IncompatibleRuntimeError
    from skillruntime.errors import InvalidSkillError as InvalidSkillError
    from skillruntime.errors import RateLimitError as RateLimitError
    from skillruntime.errors import ResourceNotFoundError as ResourceNotFoundError
    from skillruntime.errors import SkillError as SkillError
    from skillruntime.errors import SkillInputError as SkillInputError
    from skillruntime.errors import SkillNotFoundError as SkillNotFoundError
    from skillruntime.errors import SkillOutputError as SkillOutputError
    from skillruntime.errors import SkillRuntimeError as SkillRuntimeError
    from skillruntime.errors import ToolExecutionError as ToolExecutionError
    from skillruntime.errors import ToolNotAvailableError as ToolNotAvailableError
    from skillruntime.errors import ToolTimeoutError as ToolTimeoutError
    from skillruntime.errors import TruncatedInputError as TruncatedInputError
    from skillruntime.errors import UnsupportedVersionError as UnsupportedVersionError
    from skillruntime.runtime.call_record import CallRecord as CallRecord
    from skillruntime.runtime.runners import CallContext as CallContext
    from skillruntime.runtime.runtime import Approval as Approval
    from skillruntime.runtime.runtime import SkillRuntime as SkillRuntime
    from skillruntime.runtime.session import SkillSession as SkillSession
    from skillruntime.tokens.budget import TokenLedger as TokenLedger
    from skillruntime.tokens.budget import TokenLimits as TokenLimits
    from skillruntime.tokens.counter import Count as Count
    from skillruntime.tokens.counter import count as count

__version__ = "0.1.0"

_HOMES = {
    "catalog.catalog": ("SkillCatalog",),
    "catalog.discovery": ("discover",),
    "catalog.skill": ("Skill", "SkillMetadata"),
    "contract.coercion.coercion": ("Policy", "Repair"),
    "contract.contract": ("Accepted", "Contract"),
    "contract.migration.migration": ("Migration",),
    "contract.response": ("SkillResponse", "handle_skill_error"),
    "contract.schema": ("Schema",),
    "contract.input_validator": ("SkillInputValidator",),
    "contract.versions": ("Version", "VersionRange", "check_skill_compatibility"),
    "diagnostic": ("Diagnostic", "Severity"),
    "errors": (
        *("AccessDeniedError", "ErrorCode", "IncompatibleRuntimeError", "InvalidSkillError", "RateLimitError"),
        *("ResourceNotFoundError", "SkillError", "SkillInputError", "SkillNotFoundError", "SkillOutputError"),
        *("SkillRuntimeError", "ToolExecutionError", "ToolNotAvailableError", "ToolTimeoutError"),
        *("TruncatedInputError", "UnsupportedVersionError"),
    ),
    "runtime.runners": ("CallContext",),
    "runtime.runtime": ("Approval", "SkillRuntime"),
    "runtime.session": ("SkillSession",),
    "compatibility.comparison": (
        "Verdict",
        "compare",
    ),
    "derive": (
        "Derivation",
        "derive",
    ),
    "runtime.call_record": ("CallRecord",),
    "tokens.budget": (
        "TokenLedger",
        "TokenLimits",
    ),
    "tokens.counter": (
        "Count",
        "count",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *_HOME_OF]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
