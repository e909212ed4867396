from skillruntime.contract.contract import Accepted as Accepted
from skillruntime.contract.contract import Contract as Contract
from skillruntime.contract.document.check import check_document as check_document
from skillruntime.contract.document.form import CONTRACT_SCHEMA as CONTRACT_SCHEMA
from skillruntime.contract.document.lint import lint_contract as lint_contract
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
from skillruntime.contract.versions import satisfies as satisfies
