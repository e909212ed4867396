from skillruntime.server.callers.access import Authenticator as Authenticator
from skillruntime.server.callers.access import (
    BadCredentialsError as BadCredentialsError,
)
from skillruntime.server.callers.access import KeyRing as KeyRing
from skillruntime.server.callers.access import Principal as Principal
from skillruntime.server.callers.access import any_of as any_of
from skillruntime.server.callers.jwt_callers import JwtCallers as JwtCallers
from skillruntime.server.callers.jwt_callers import keys_from as keys_from
from skillruntime.server.callers.key_store import add_key as add_key
from skillruntime.server.callers.key_store import revoke_keys as revoke_keys
from skillruntime.server.callers.rate_limits import Limits as Limits
from skillruntime.server.executions.errors import DatabaseAwayError as DatabaseAwayError
from skillruntime.server.executions.executions import Executions as Executions
from skillruntime.server.executions.open_executions import (
    durable_executions as durable_executions,
)
from skillruntime.server.executions.open_executions import (
    memory_executions as memory_executions,
)
from skillruntime.server.executions.sqlite.database import (
    DatabaseInUseError as DatabaseInUseError,
)
from skillruntime.server.host import Hosting as Hosting
from skillruntime.server.host import host_skills as host_skills
from skillruntime.server.http.app import create_app as create_app
from skillruntime.server.http.uvicorn_server import Server as Server
from skillruntime.server.http.uvicorn_server import bind as bind
from skillruntime.server.kept_calls import KeptCalls as KeptCalls
from skillruntime.server.kept_calls import open_kept_calls as open_kept_calls
from skillruntime.server.moved_data import MovedData as MovedData
from skillruntime.server.moved_data import move_data as move_data
from skillruntime.server.published_skill import PublishedSkill as PublishedSkill
from skillruntime.server.published_skill import SkillWork as SkillWork
from skillruntime.server.published_skill import describe as describe
from skillruntime.server.published_skill import serve_catalog as serve_catalog
from skillruntime.server.service import SkillService as SkillService
from skillruntime.server.webhooks import Webhooks as Webhooks
