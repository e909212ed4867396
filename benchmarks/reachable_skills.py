"""Whether every skill of a directory is reached by one name, on every way to a model.

    python -m benchmarks.reachable_skills DIRECTORY... [--without-tools]

Each SKILL.md below a directory is offered, is a copy of one that is offered, or a
diagnostic says why it is not. Each skill that is offered has one name in the list, the
prompt, search, the lockfile, and in `load_skill` of LangChain's tools, of the
middleware and of MCP, whose resources have it too. Each of its callables is one tool,
and a call by its name reaches it, as does a call with `call_skill`. No script runs:
nothing is trusted, and no call is approved.

Prints a line of counts for each directory, and a line for each exception. With
--without-tools, callables are left out: their contracts are derived, which takes most
of the time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from mcp import Client

from skillruntime.adapters.agent_middleware import SkillMiddleware
from skillruntime.adapters.langchain import SkillToolkit
from skillruntime.adapters.mcp import to_server
from skillruntime.adapters.tool_formats import SkillTools
from skillruntime.catalog import SkillCatalog, discover, lock_skills
from skillruntime.diagnostic import Diagnostic
from skillruntime.errors import SkillRuntimeError
from skillruntime.runtime import SkillRuntime
from skillruntime.testing import ScriptedChatModel, call_message

NOT_SEARCHED = {".git", "node_modules", "__pycache__", ".venv", "venv", ".tox"}
NOT_REACHED = {"SKILL_NOT_FOUND", "TOOL_NOT_AVAILABLE", "INTERNAL_ERROR"}
ALL_TOKENS = 1_000_000_000
CALLS_A_TURN = 100


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--without-tools", action="store_true")
    options = parser.parse_args()
    for directory in options.directories:
        catalog = discover(
            directory.resolve(),
            use_index=False,
            derive_contracts=not options.without_tools,
        )
        counts, exceptions = checked(catalog)
        shown = ", ".join(f"{number:,} {what}" for what, number in counts.items())
        print(f"{directory.name}: {shown}, {len(exceptions)} exceptions", flush=True)
        for exception in exceptions:
            print(f"  {exception}", flush=True)


def checked(catalog: SkillCatalog) -> tuple[Counter[str], list[str]]:
    """Return how many of what was checked, and a sentence for each exception."""
    counts: Counter[str] = Counter()
    exceptions = [*unexplained(catalog, counts)]
    visible = catalog.for_model()
    counts["skills"] = len(catalog)
    counts["hidden from models"] = len(catalog) - len(visible)
    runtime = SkillRuntime(
        catalog, approve=lambda approval: False, definition_tokens=ALL_TOKENS
    )
    exceptions += not_listed(visible)
    exceptions += not_found(visible)
    exceptions += not_locked(catalog, counts)
    exceptions += not_activated(runtime)
    exceptions += not_called(runtime, counts)
    exceptions += not_in_langchain(runtime)
    exceptions += not_in_the_middleware(runtime)
    exceptions += anyio.run(not_served, runtime, counts)
    return counts, exceptions


def unexplained(catalog: SkillCatalog, counts: Counter[str]) -> Iterator[str]:
    """Yield each SKILL.md that is neither offered nor a copy, and that no diagnostic
    explains.
    """
    offered = {metadata.path for metadata in catalog.every_version().values()}
    counts["older versions"] = len(catalog.every_version()) - len(catalog)
    real = {os.path.realpath(path) for path in offered}
    contents = {digest_of(path) for path in offered}
    reported = {finding.path for finding in catalog.diagnostics if is_refusal(finding)}
    left_out: list[str] = []
    for path in skill_files(catalog.roots[0].path):
        counts["SKILL.md"] += 1
        if path in offered:
            continue
        if os.path.realpath(path) in real or digest_of(path) in contents:
            counts["copies"] += 1
        elif path in reported:
            counts["reported"] += 1
        else:
            left_out.append(path)
    stated = 0
    for finding in catalog.diagnostics:
        number = re.match(r"([\d,]+) \D*not offered", finding.message)
        if finding.rule in ("not-offered", "translation") and number:
            stated += int(number[1].replace(",", ""))
    counts["counted in a note"] = len(left_out)
    # A note counts copies too.
    if len(left_out) > stated:
        yield f"{len(left_out) - stated} not explained, one of {left_out[:5]}"


def is_refusal(finding: Diagnostic) -> bool:
    """Return whether *finding* says that its file is not offered."""
    return finding.severity == "error" or finding.rule in (
        "name-collision",
        "link-outside",
    )


def skill_files(root: str) -> Iterator[str]:
    """Yield the path of each SKILL.md, in any case, below *root*."""
    for directory, directories, files in os.walk(root):
        directories[:] = [name for name in directories if name not in NOT_SEARCHED]
        for name in files:
            if name.lower() == "skill.md":
                yield f"{directory}/{name}"


def digest_of(skill_file: str) -> str:
    """Return a digest of all files beside and below *skill_file*, by its own code."""
    directory = Path(skill_file).parent
    total = hashlib.sha256()
    for path in sorted(directory.rglob("*")):
        relative = path.relative_to(directory)
        if path.is_file() and not NOT_SEARCHED.intersection(relative.parts):
            own = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{relative.as_posix()}\0{own}\n".encode("utf-8", "replace"))
    return total.hexdigest()


def not_listed(visible: SkillCatalog) -> Iterator[str]:
    """Yield each skill that the lists for a model do not have, under just one name."""
    if not visible:
        return  # without skills, the list is an empty text
    listed = json.loads(visible.render(style="json").text)["skills"]
    names = Counter(each["name"] for each in listed)
    prompt = visible.to_prompt()
    for name in visible:
        if names[name] != 1:
            yield f"{name!r} is {names[name]} times in the list"
        if f"- {name}: " not in prompt:
            yield f"{name!r} is not in the prompt"
    for name in names.keys() - visible.keys():
        yield f"{name!r} is in the list and not in the catalog"


def not_found(visible: SkillCatalog) -> Iterator[str]:
    """Yield each skill that a search for its description does not find."""
    visible.search("wait", wait=True)
    for name, metadata in visible.items():
        hits = visible.search(f"{name} {metadata.description}"[:400], len(visible))
        found = [hit.name for hit in hits]
        if found.count(name) != 1:
            yield f"{name!r} is found {found.count(name)} times"


def not_locked(catalog: SkillCatalog, counts: Counter[str]) -> Iterator[str]:
    """Yield each skill that the lockfile does not pin, and each that has another name
    or another path in a catalog that is frozen by it.
    """
    findings: list[Diagnostic] = []
    document = lock_skills(catalog, findings=findings)
    refused = {finding.path for finding in findings}
    counts["not lockable"] = len(refused)
    with tempfile.TemporaryDirectory() as temporary:
        lockfile = Path(temporary) / "skills-lock.json"
        lockfile.write_text(json.dumps(document))
        frozen = discover(catalog.roots[0].path, use_index=False, frozen=lockfile)
    for name, metadata in catalog.items():
        if metadata.path in refused:
            continue
        if name not in document["skills"]:
            yield f"{name!r} is not in the lockfile"
        elif name not in frozen:
            yield f"{name!r} is not in the frozen catalog"
        elif digest_of(frozen[name].path) != digest_of(metadata.path):
            yield f"{name!r} is {frozen[name].path} in the frozen catalog"


def not_activated(runtime: SkillRuntime) -> Iterator[str]:
    """Yield each skill that its name does not activate."""
    for name, metadata in runtime.catalog.items():
        try:
            skill = runtime.catalog.activate(name)
        except SkillRuntimeError as error:
            yield f"{name!r} is not activated: {error}"
            continue
        if (skill.name, skill.metadata.path) != (name, metadata.path):
            yield f"{name!r} activates {skill.name!r}, {skill.metadata.path}"


def not_called(runtime: SkillRuntime, counts: Counter[str]) -> Iterator[str]:
    """Yield each callable that is not one tool, or that a call by its name does not
    reach.
    """
    names = visible_names(runtime)
    # By default more than 128 callables have one tool, `call_skill`.
    tools = SkillTools(runtime, style="typed")
    defined = {each["function"]["name"] for each in tools.to_openai()}
    counts["callables"] = len(names)
    contracts = tools.contracts
    counts["tools"] = len(contracts)
    for name in contracts.keys() - defined:
        yield f"the tool {name!r} is not defined"
    reached = Counter(contract.name for contract in contracts.values())
    for name in names:
        try:
            runtime.contract(name)
        except SkillRuntimeError:
            # A script that looks like a tool; a model sees no name for it.
            counts["scripts without a contract"] += 1
            if reached[name]:
                yield f"{name!r} is a tool without a contract"
            continue
        if reached[name] != 1:
            yield f"{name!r} is {reached[name]} tools"
        response = runtime.call_sync(name, {})
        codes = {error.code for error in response.errors}
        if codes & NOT_REACHED:
            yield f"a call of {name!r} answers {response.errors[0].message}"


def not_in_langchain(runtime: SkillRuntime) -> Iterator[str]:
    """Yield each skill and each callable that LangChain's tools do not reach: by
    `load_skill`, and by `call_skill` or a tool of its own.
    """
    generic = SkillToolkit(runtime, style="generic")
    own = {tool.name: tool for tool in generic.get_tools()}
    for name in runtime.catalog.for_model():
        text = own["load_skill"].invoke({"name": name})
        if not str(text).startswith("<skill "):
            yield f"LangChain's load_skill({name!r}) answers {text!r:.200}"
    for name in with_contract(runtime):
        text = own["call_skill"].invoke({"name": name, "arguments": {}})
        if is_not_reached(text):
            yield f"LangChain's call_skill({name!r}) answers {text!r:.200}"
    for tool in SkillToolkit(runtime, style="typed").get_tools():
        if tool.name not in own:
            text = tool.invoke({})
            if is_not_reached(text):
                yield f"LangChain's tool {tool.name!r} answers {text!r:.200}"


def not_in_the_middleware(runtime: SkillRuntime) -> Iterator[str]:
    """Yield each skill that an agent does not load, and each callable that it does not
    call.
    """
    loads = [("load_skill", {"name": name}) for name in runtime.catalog.for_model()]
    calls = [
        ("call_skill", {"name": name, "arguments": {}})
        for name in with_contract(runtime)
    ]
    for first in range(0, len(loads), CALLS_A_TURN):
        asked = loads[first : first + CALLS_A_TURN]
        for call, answer in zip(asked, answers_of(runtime, asked), strict=True):
            if answer.status != "success":
                yield f"the middleware's {call} answers {answer.text:.200}"
    for first in range(0, len(calls), CALLS_A_TURN):
        asked = calls[first : first + CALLS_A_TURN]
        for call, answer in zip(asked, answers_of(runtime, asked), strict=True):
            if is_not_reached(answer.text):
                yield f"the middleware's {call} answers {answer.text:.200}"


def with_contract(runtime: SkillRuntime) -> Iterator[str]:
    """Yield the name of each callable that a model sees."""
    for name in visible_names(runtime):
        try:
            runtime.contract(name)
        except SkillRuntimeError:
            continue
        yield name


def visible_names(runtime: SkillRuntime) -> list[str]:
    """Return the names of the callables; without those of skills that their author
    hides from models.
    """
    visible = runtime.catalog.for_model()
    names = runtime.callable_names()
    return [name for name in names if name.partition("/")[0] in visible]


def answers_of(
    runtime: SkillRuntime, calls: Sequence[tuple[str, dict[str, Any]]]
) -> list[ToolMessage]:
    """Return the answers to *calls*, which an agent with the middleware makes in one
    turn.
    """
    model = ScriptedChatModel(replies=[call_message(*calls), AIMessage("Done.")])
    agent = create_agent(model, middleware=[SkillMiddleware(runtime)])
    state = anyio.run(agent.ainvoke, {"messages": [HumanMessage("Please.")]})
    return [each for each in state["messages"] if isinstance(each, ToolMessage)]


def is_not_reached(text: str) -> bool:
    """Return whether *text*, an answer, says that the call reached no callable."""
    return any(f'"code":"{code}"' in text for code in NOT_REACHED)


async def not_served(runtime: SkillRuntime, counts: Counter[str]) -> list[str]:
    """Return what MCP does not serve: each skill by `load_skill` and as a resource,
    each callable as a tool.
    """
    exceptions: list[str] = []
    async with Client(to_server(runtime)) as client:
        resources = [each.uri for each in await every_page(client, "resources")]
        tools = {each.name for each in await every_page(client, "tools")}
        for name, contract in SkillTools(runtime, style="typed").contracts.items():
            # Some clients replace "-" in the names of tools, so MCP has "_".
            shown = {name, name.replace("-", "_")}
            if "/" in contract.name and tools.isdisjoint(shown):
                exceptions.append(f"{name!r} is not a tool of MCP")
        for name, metadata in runtime.catalog.for_model().items():
            uri = f"skill://{quote(name.replace(':', '/'))}/SKILL.md"
            if resources.count(uri) != 1:
                exceptions.append(f"{uri} is {resources.count(uri)} times a resource")
                continue
            text = Path(metadata.path).read_bytes()
            read = await client.read_resource(uri)
            if bytes_of(read.contents[0]) != text:
                exceptions.append(f"{uri} is not the file of {name!r}")
            loaded = await client.call_tool("load_skill", {"name": name})
            if loaded.is_error:
                exceptions.append(f"{name!r} is not loaded: {loaded.content[0]}")
        counts["MCP tools"] = len(tools)
    return exceptions


async def every_page(client: Client, kind: str) -> list[Any]:
    """Return all *kind* of a server, page by page."""
    found: list[Any] = []
    cursor = None
    while True:
        page = await getattr(client, f"list_{kind}")(cursor=cursor)
        found += getattr(page, kind)
        cursor = page.next_cursor
        if not cursor:
            return found


def bytes_of(content: Any) -> bytes:
    """Return the bytes of a resource's content, a text or a blob."""
    import base64

    if hasattr(content, "text"):
        return content.text.encode()
    return base64.b64decode(content.blob)


if __name__ == "__main__":
    main()
