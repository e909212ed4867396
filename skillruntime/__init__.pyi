from skillruntime._version import __version__ as __version__
from skillruntime.adapters.agent_middleware import SkillMiddleware as SkillMiddleware
from skillruntime.adapters.enforced_tool import enforce as enforce
from skillruntime.adapters.langchain import SkillToolkit as SkillToolkit
from skillruntime.catalog.catalog import SkillCatalog as SkillCatalog
from skillruntime.catalog.discovery.discovery import discover as discover
from skillruntime.catalog.skill import Skill as Skill
from skillruntime.catalog.skill import SkillMetadata as SkillMetadata
from skillruntime.contract.contract import Accepted as Accepted
from skillruntime.contract.contract import Contract as Contract
from skillruntime.contract.input_validator import (
    SkillInputValidator as SkillInputValidator,
)
from skillruntime.contract.migration.migration import Migration as Migration
from skillruntime.contract.repairing import Repairer as Repairer
from skillruntime.contract.repairing import repair as repair
from skillruntime.contract.repairs.policy import Policy as Policy
from skillruntime.contract.repairs.record import Repair as Repair
from skillruntime.contract.response import SkillResponse as SkillResponse
from skillruntime.contract.response import handle_skill_error as handle_skill_error
from skillruntime.contract.schemas.schema import Schema as Schema
from skillruntime.contract.versions import Version as Version
from skillruntime.contract.versions import VersionRange as VersionRange
from skillruntime.contract.versions import (
    check_skill_compatibility as check_skill_compatibility,
)
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
from skillruntime.errors import TokenLimitError as TokenLimitError
from skillruntime.errors import ToolExecutionError as ToolExecutionError
from skillruntime.errors import ToolNotAvailableError as ToolNotAvailableError
from skillruntime.errors import ToolTimeoutError as ToolTimeoutError
from skillruntime.errors import TruncatedInputError as TruncatedInputError
from skillruntime.errors import UnsupportedVersionError as UnsupportedVersionError
from skillruntime.runtime.call_record import CallRecord as CallRecord
from skillruntime.runtime.function_skill import skill as skill
from skillruntime.runtime.grants import Grants as Grants
from skillruntime.runtime.runners import CallContext as CallContext
from skillruntime.runtime.runtime import Approval as Approval
from skillruntime.runtime.runtime import SkillRuntime as SkillRuntime
from skillruntime.runtime.session import SkillSession as SkillSession
from skillruntime.tokens.budget import TokenLedger as TokenLedger
from skillruntime.tokens.budget import TokenLimits as TokenLimits
