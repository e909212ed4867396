from skillruntime.adapters.mcp_proxy.client_session import enforce as enforce
from skillruntime.adapters.mcp_proxy.log import open_log as open_log
from skillruntime.adapters.mcp_proxy.options import Options as Options
from skillruntime.adapters.mcp_proxy.session import Session as Session
