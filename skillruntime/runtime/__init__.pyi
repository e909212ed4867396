from skillruntime.runtime.approval import Approval as Approval
from skillruntime.runtime.call_record import CallRecord as CallRecord
from skillruntime.runtime.function_skill import skill as skill
from skillruntime.runtime.grants import Grants as Grants
from skillruntime.runtime.runners import CallContext as CallContext
from skillruntime.runtime.runtime import SkillRuntime as SkillRuntime
from skillruntime.runtime.sandbox.levels import open_sandbox as open_sandbox
from skillruntime.runtime.sandbox.levels import sandbox_report as sandbox_report
from skillruntime.runtime.sandbox.protocol import Limits as Limits
from skillruntime.runtime.sandbox.protocol import Sandbox as Sandbox
from skillruntime.runtime.sandbox.protocol import SandboxCommand as SandboxCommand
from skillruntime.runtime.sandbox.readable_paths import (
    interpreter_paths as interpreter_paths,
)
from skillruntime.runtime.session import SkillSession as SkillSession
