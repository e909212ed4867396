from skillruntime.testing.scripted_model import ScriptedChatModel as ScriptedChatModel
from skillruntime.testing.scripted_model import call_message as call_message
from skillruntime.testing.skill_tests.options import SkillTests as SkillTests
from skillruntime.testing.skill_tests.results import CallableResult as CallableResult
from skillruntime.testing.skill_tests.results import Failure as Failure
from skillruntime.testing.skill_tests.results import Hindrance as Hindrance
from skillruntime.testing.skill_tests.results import SkillResult as SkillResult
from skillruntime.testing.skill_tests.results import SkillTestReport as SkillTestReport
from skillruntime.testing.skill_tests.runner import run_skill_tests as run_skill_tests
from skillruntime.testing.trigger_tests.confused_pairs import (
    ConfusedPair as ConfusedPair,
)
from skillruntime.testing.trigger_tests.requests import Request as Request
from skillruntime.testing.trigger_tests.requests import read_requests as read_requests
from skillruntime.testing.trigger_tests.triggers import LostRequest as LostRequest
from skillruntime.testing.trigger_tests.triggers import TriggerReport as TriggerReport
from skillruntime.testing.trigger_tests.triggers import ask_model as ask_model
from skillruntime.testing.trigger_tests.triggers import rank_requests as rank_requests
