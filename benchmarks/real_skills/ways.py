"""The ways of carrying out a task: this library in an agent and over MCP, a plain shell
tool, and deepagents' skills. Each is a real agent loop with a scripted model.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import anyio
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool, tool

from benchmarks.real_skills.model import FollowingModel, filled
from benchmarks.real_skills.steps import (
    Call,
    Load,
    ReadMade,
    Resource,
    Shell,
    Step,
    Write,
)
from skillruntime import SkillMiddleware, SkillRuntime, discover
from skillruntime.testing import call_message

ToolCall = tuple[str, dict[str, Any]]
LIMIT = {"recursion_limit": 80}
SHELL_END = "\nexit code "
"""What the shell says before a code that is not 0."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task is carried out."""

    skills: Path
    workspace: Path


@dataclass(frozen=True, slots=True)
class Answer:
    """What the model got for a step."""

    step: Step
    text: str
    has_failed: bool


@dataclass(frozen=True, slots=True)
class Way:
    """A way of carrying out tasks."""

    name: str
    run: Callable[[str, tuple[Step, ...], Place], list[Answer]]
    is_ours: bool = True
    is_trusted: bool = True
    missing: str = ""
    """Why it cannot be tried here."""


def shell_of(workspace: Path) -> BaseTool:
    """Return the plain shell tool that each agent but that of deepagents has."""

    @tool
    def shell(command: str) -> str:
        """Run a command in the workspace."""
        ran = subprocess.run(
            ["bash", "-c", command],
            cwd=workspace,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        said = ran.stdout + ran.stderr
        if ran.returncode:
            return f"{said}{SHELL_END}{ran.returncode}"
        return said

    return shell


def replies(calls: Iterable[ToolCall]) -> list[AIMessage]:
    """Return one message of the model for each call, and its last word."""
    return [*(call_message(call) for call in calls), AIMessage("done")]


def answers(steps: tuple[Step, ...], messages: Iterable[Any]) -> list[Answer]:
    """Return the answers to *steps* in *messages*."""
    found = [message for message in messages if message.type == "tool"]
    return [
        Answer(step, message.text, message.status == "error")
        for step, message in zip(steps, found, strict=False)
    ]


def our_call(step: Step, tool_of: Callable[[str], ToolCall | None]) -> ToolCall:
    """Return the call that carries out *step* with this library's tools."""
    match step:
        case Load():
            return "load_skill", {"name": step.skill}
        case Resource():
            return "read_skill_resource", {"name": step.skill, "path": step.path}
        case ReadMade():
            path = f"{{made:{step.name}}}"
            return "read_skill_resource", {"name": step.skill, "path": path}
        case Write():
            return "write_skill_input", {"path": step.path, "text": step.text}
        case Shell():
            return "shell", {"command": step.command}
        case Call():
            named = tool_of(step.name)
            if named is None:
                return "call_skill", {"name": step.name, "arguments": step.arguments}
            return named[0], {**step.arguments}


def our_word(place: str) -> str | None:
    """Return where files lie that this library's tools wrote."""
    kind, _, name = place.partition(":")
    if kind == "inputs":
        return "skill-files"
    if kind == "resource":
        return f"skill-files/{name}"
    return None


def in_middleware(is_trusted: bool) -> Callable[..., list[Answer]]:
    """Return a runner of steps in an agent with ``SkillMiddleware``."""

    def run(request: str, steps: tuple[Step, ...], place: Place) -> list[Answer]:
        if is_trusted:
            catalog = discover(place.skills, trusted=True)
            runtime = SkillRuntime(catalog, workspace=place.workspace)
        else:
            runtime = SkillRuntime(
                discover(place.skills),
                approve=lambda request: True,
                workspace=place.workspace,
            )
        calls = [
            filled_call(our_call(step, lambda _: None), our_word) for step in steps
        ]
        agent = create_agent(
            FollowingModel(replies=replies(calls)),
            tools=[shell_of(place.workspace)],
            middleware=[SkillMiddleware(runtime)],
        )
        asked = {"messages": [("user", request)]}
        return answers(steps, agent.invoke(asked, LIMIT)["messages"])

    return run


def over_mcp(is_trusted: bool) -> Callable[..., list[Answer]]:
    """Return a runner of steps in an agent with the tools of ``serve --mcp``."""

    def run(request: str, steps: tuple[Step, ...], place: Place) -> list[Answer]:
        return anyio.run(_over_mcp, request, steps, place, is_trusted)

    return run


async def _over_mcp(
    request: str, steps: tuple[Step, ...], place: Place, is_trusted: bool
) -> list[Answer]:
    from mcp import Client, StdioServerParameters

    if is_trusted:
        command = ["-m", "skillruntime", "serve", "--mcp", "--trust"]
        command += ["--skills", str(place.skills), "--workspace", str(place.workspace)]
    else:
        server = Path(__file__).with_name("approving_server.py")
        command = [str(server), str(place.skills), str(place.workspace)]
    started = StdioServerParameters(
        command=sys.executable, args=command, env={**os.environ}, cwd="/"
    )
    async with Client(started) as client:
        served = (await client.list_tools()).tools
        names = {_plain(each.name): each.name for each in served}

        def tool_of(name: str) -> ToolCall | None:
            # A callable that is not served is asked for by its own name.
            return names.get(_plain(name), _plain(name)), {}

        calls = [filled_call(our_call(step, tool_of), our_word) for step in steps]
        agent = create_agent(
            FollowingModel(replies=replies(calls)),
            tools=[
                *(_mcp_tool(client, each) for each in served),
                shell_of(place.workspace),
            ],
        )
        asked = {"messages": [("user", request)]}
        final = await agent.ainvoke(asked, LIMIT)
        return answers(steps, final["messages"])


def _plain(name: str) -> str:
    """Return *name* without marks: a model finds a tool by its words."""
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _mcp_tool(client: Any, served: Any) -> BaseTool:
    """Return a tool of an MCP server as LangChain takes it."""
    from langchain_core.tools import ToolException

    async def call(**arguments: Any) -> str:
        result = await client.call_tool(served.name, arguments)
        texts = [part.text for part in result.content if part.type == "text"]
        if result.is_error:
            raise ToolException("\n".join(texts))
        return "\n".join(texts)

    return StructuredTool(
        name=served.name,
        description=served.description or served.name,
        args_schema=served.input_schema,
        coroutine=call,
        handle_tool_error=True,
    )


def in_shell(request: str, steps: tuple[Step, ...], place: Place) -> list[Answer]:
    """Carry out *steps* with a shell alone."""
    calls = []
    for step in steps:
        call = "shell", {"command": shell_command(step)}
        calls.append(filled_call(call, peer_word(place)))
    agent = create_agent(
        FollowingModel(replies=replies(calls)), tools=[shell_of(place.workspace)]
    )
    asked = {"messages": [("user", request)]}
    return answers(steps, agent.invoke(asked, LIMIT)["messages"])


def in_deepagents(request: str, steps: tuple[Step, ...], place: Place) -> list[Answer]:
    """Carry out *steps* with the skills of deepagents, and its shell on this machine."""
    from deepagents import create_deep_agent
    from deepagents.backends import LocalShellBackend

    calls = []
    for step in steps:
        call: ToolCall = "execute", {"command": shell_command(step)}
        if isinstance(step, Write):
            path = place.workspace / step.path
            call = "write_file", {"file_path": str(path), "content": step.text}
        elif isinstance(step, Load):
            call = "read_file", {"file_path": f"{{skill:{step.skill}}}/SKILL.md"}
        calls.append(filled_call(call, peer_word(place)))
    agent = create_deep_agent(
        model=FollowingModel(replies=replies(calls)),
        skills=[str(place.skills)],
        backend=LocalShellBackend(
            root_dir=place.workspace, virtual_mode=False, inherit_env=True, timeout=180
        ),
    )
    asked = {"messages": [("user", request)]}
    return answers(steps, agent.invoke(asked, LIMIT)["messages"])


def shell_command(step: Step) -> str:
    """Return the command with which a model carries out *step* in a shell."""
    match step:
        case Load():
            return f"cat {{skill:{step.skill}}}/SKILL.md"
        case Resource():
            return f"ls {{skill:{step.skill}}}/{step.path}"
        case ReadMade():
            return f"cat {step.name}"
        case Write():
            return f"cat > {step.path} <<'END-OF-FILE'\n{step.text}\nEND-OF-FILE"
        case Shell() | Call():
            return step.command


def peer_word(place: Place) -> Callable[[str], str | None]:
    """Return where files lie for an agent that reaches all of this machine."""

    def word(named: str) -> str | None:
        kind, _, name = named.partition(":")
        if kind == "inputs":
            return "."
        if kind in ("skill", "resource", "directory"):
            return str(place.skills / name)
        return name or None

    return word


def filled_call(call: ToolCall, word: Callable[[str], str | None]) -> ToolCall:
    """Return *call* with the places in its arguments filled by *word*."""
    name, arguments = call
    return name, filled(dict(arguments), word)


WAYS = (
    Way("middleware, trusted", in_middleware(True)),
    Way("middleware, untrusted", in_middleware(False), is_trusted=False),
    Way("MCP, trusted", over_mcp(True)),
    Way("MCP, untrusted", over_mcp(False), is_trusted=False),
    Way("plain shell", in_shell, is_ours=False),
    Way(
        "deepagents",
        in_deepagents,
        is_ours=False,
        missing=""
        if find_spec("deepagents")
        else "deepagents is not installed: pip install 'skillruntime[peers]'",
    ),
)
