from skillruntime.runtime.activation import ActiveSkill as ActiveSkill
from skillruntime.runtime.call_record import CallRecord as CallRecord
from skillruntime.runtime.function_skill import FunctionSkill as FunctionSkill
from skillruntime.runtime.function_skill import skill as skill
from skillruntime.runtime.runners import CallContext as CallContext
from skillruntime.runtime.runtime import Approval as Approval
from skillruntime.runtime.runtime import SkillRuntime as SkillRuntime
from skillruntime.runtime.session import SkillSession as SkillSession
