"""Inner names of the remote package that more than the test of their module needs: imported once,
here.
"""

from __future__ import annotations

from skillruntime.remote.client import RemoteRunner
from skillruntime.remote.credentials import NoCredentials
from skillruntime.remote.descriptor import (
    AuthConfig,
    AuthType,
    OAuth2Config,
    ParameterDefinition,
    RetryPolicy,
)
from skillruntime.remote.descriptor_file import read_descriptor_file
from skillruntime.remote.descriptor_parts import CapabilityType
from skillruntime.remote.http_message import Transport, WireRequest, WireResponse
from skillruntime.remote.http_transport import HttpTransport
from skillruntime.remote.protocol import ExecutionStatus, InvocationRequest, Progress
from skillruntime.remote.ssrf_guard import is_inside
from skillruntime.remote.wire_errors import RetryHint

__all__ = [
    "AuthConfig",
    "AuthType",
    "CapabilityType",
    "ExecutionStatus",
    "HttpTransport",
    "InvocationRequest",
    "NoCredentials",
    "OAuth2Config",
    "ParameterDefinition",
    "Progress",
    "RemoteRunner",
    "RetryHint",
    "RetryPolicy",
    "Transport",
    "WireRequest",
    "WireResponse",
    "is_inside",
    "read_descriptor_file",
]
