"""Walks a flow with answers written out beforehand: no sockets, no clock."""

from __future__ import annotations

import json
from typing import Any

from skillruntime.remote import Caller, Execution, SkillDescriptor, UnreachableError
from skillruntime.remote.invocation_flow import InvocationFlow, Pause, Plan, Saw, Send
from tests.remote.parts import InvocationRequest, WireRequest, WireResponse

URL = "https://api.example.com/skills/translate"


def descriptor(**extensions: Any) -> SkillDescriptor:
    """Return a small descriptor with these extensions."""
    return SkillDescriptor.from_dict(
        {
            "protocol": {"version": "1.0.0"},
            "id": "com.example.translate-v1",
            "name": "Translator",
            "version": "2.1.0",
            "capability_type": "api",
            "description": "Translates",
            "provider": {"name": "Example"},
            "endpoint": {
                "url": f"{URL}/invoke",
                "status_url": f"{URL}/status/{{execution_id}}",
                "result_url": f"{URL}/result/{{execution_id}}",
                "retry": {"max_attempts": 3, "backoff_ms": 1000},
            },
            "inputs": [{"name": "text", "type": "string", "required": True}],
            "output": {},
            "auth": {"type": "none"},
            "access": "public",
            **({"extensions": extensions} if extensions else {}),
        }
    )


def plan(*, repeatable: bool = False, patience: float = 300, **extensions: Any) -> Plan:
    """Return a plan for one call of that descriptor's skill."""
    request = InvocationRequest(
        Caller("me"), "com.example.translate-v1", {"text": "hi"}
    )
    return Plan(
        descriptor(**extensions),
        request,
        "key-1",
        repeatable=repeatable,
        patience=patience,
    )


def shown(status: str, **more: Any) -> dict[str, Any]:
    """Return an execution's document."""
    stamps = {
        "created_at": "2025-03-20T14:30:00Z",
        "updated_at": "2025-03-20T14:30:00Z",
    }
    return {
        "execution_id": "exec-789-xyz",
        "status": status,
        "skill_id": "com.example.translate-v1",
        **more,
        "timestamps": stamps,
    }


def answer(document: Any, status: int = 200, **headers: str) -> WireResponse:
    """Return a response with a JSON body."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return WireResponse(
        status,
        {"content-type": "application/json", **named},
        json.dumps(document).encode(),
    )


class Walk:
    """A flow walked to its end: what was sent, how long was paused, what was seen, and
    what came of it.
    """

    def __init__(
        self, flow: InvocationFlow, answers: list[WireResponse | UnreachableError]
    ) -> None:
        self.sent: list[WireRequest] = []
        self.pauses: list[float] = []
        self.seen: list[str] = []
        self.result: Execution | None = None
        remaining = iter(answers)
        say: WireResponse | UnreachableError | None = None
        try:
            while True:
                match flow.send(say):
                    case Send(request):
                        self.sent.append(request)
                        say = next(remaining)
                    case Pause(seconds):
                        self.pauses.append(seconds)
                        say = None
                    case Saw(execution):
                        self.seen.append(execution.status.value)
                        say = None
        except StopIteration as end:
            self.result = end.value
        self.left = list(remaining)

    @property
    def lines(self) -> list[str]:
        """What was sent, as methods and the ends of the URLs."""
        return [
            f"{request.method} {request.url.removeprefix(URL)}" for request in self.sent
        ]
