"""Define the tools of every conversation. They have contracts, so their malformed
arguments are repaired too.

``load_skill``, ``read_skill_resource`` (also for the rest of a text that was cut),
``write_skill_input``, ``call_skill``, and, where the catalog does not fit its budget,
``search_skills``.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Literal

from skillruntime.adapters.tools.definitions import Definitions, choose_definitions
from skillruntime.adapters.tools.known_names import (
    OWN_TOOLS,
    is_hidden,
    meant_callable,
    meant_skill,
    meant_tool,
    skill_in,
)
from skillruntime.adapters.tools.tool_names import to_tool_name, tool_names
from skillruntime.adapters.tools.tool_schema import to_tool_schema
from skillruntime.catalog.rendering import Rendered, compact_entry
from skillruntime.catalog.resources import may_have_callables
from skillruntime.catalog.visibility import (
    escaped,
    visible_json,
    visible_line,
    visible_text,
)
from skillruntime.contract.closest_names import nearest_names
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.errors import ErrorCode, SkillError, SkillRuntimeError
from skillruntime.runtime.presentation.activation import fingerprint
from skillruntime.runtime.presentation.model_view import for_model, without_data
from skillruntime.runtime.runners import CallContext
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

MAX_OFFERED_NAMES = 100
"""The most names that ``load_skill`` lists in its schema; each costs about seven tokens
in every request.
"""

_NOT_INDEXED = (
    "Only names and descriptions were searched; the instructions can be searched in a "
    "minute."
)

MOST_TOOLS = 128
"""The most tools that OpenAI takes in one request; the other providers' limits are
higher or not stated.
"""

ToolListName = Literal["fixed", "typed"]
ToolStyle = Literal["typed", "generic"]


@dataclass(frozen=True, slots=True)
class ToolList:
    """How a model calls skills: each as a separate tool, or all through ``call_skill``.

    ``own`` are the conversation's tools. ``to_shown_name`` and ``to_schema`` decide how
    instructions name a callable, and whether they contain its schema, which they must
    if no tool definition does.
    """

    own: tuple[str, ...]
    how_to: str
    to_shown_name: Callable[[str], str]
    to_schema: Callable[[Contract], Mapping[str, Any]] | None


_ON_FAILURE = (
    "Answers are envelopes: on failure, read errors[].suggested_action and act on it."
)

TYPED = ToolList(
    ("load_skill", "read_skill_resource", "write_skill_input"),
    "You have skills. Before you use one, load it with load_skill and follow its "
    f"instructions; its tools are offered then. {_ON_FAILURE}",
    to_tool_name,
    None,
)

FIXED = ToolList(
    (
        "load_skill",
        "call_skill",
        "read_skill_resource",
        "write_skill_input",
        "search_skills",
    ),
    "You have skills. Before you use one, load it with load_skill and follow its "
    f"instructions. Call what they list as callable with call_skill. {_ON_FAILURE}",
    str,
    to_tool_schema,
)


INSTRUCTIONS_ONLY = (
    "You have skills. Before you use one, load it with load_skill and follow its "
    f"instructions. {_ON_FAILURE}"
)
"""How to use skills that have nothing to call."""


def fits(rendered: Rendered) -> bool:
    """Return whether the rendered catalog has every skill in full."""
    return not (rendered.shortened or rendered.name_only or rendered.omitted)


def to_text(response: SkillResponse) -> str:
    """Write an answer for a model: instructions, resources and pages as plain text,
    anything else as JSON.
    """
    response = for_model(response)
    metadata = response.metadata or {}
    if "page" in metadata:
        page = escaped(visible_text(metadata["page"]))
        if not response.ok:
            rest = without_data(response).to_json()
            return f"{page}\n{escaped(visible_json(rest))}"
        if "exit_meaning" in metadata:
            meaning = escaped(visible_line(metadata["exit_meaning"]))
            return f"{page}\n[exit code {metadata['exit_code']}: {meaning}]"
        return page
    # In JSON every line end and quote of a long text would cost an extra token.
    if (
        isinstance(response.data, str)
        and response.status == "success"
        and metadata.get("skill") in OWN_TOOLS
    ):
        return escaped(response.data)
    return escaped(visible_json(response.to_json()))


def refusal_text(error: SkillRuntimeError) -> str:
    """Return the text for a model whose call was refused with *error*."""
    return to_text(SkillResponse.failed(*error.to_errors()))


def to_object(response: SkillResponse) -> dict[str, Any]:
    """Return an answer as a JSON object for an SDK that serializes it itself, with
    hidden characters as visible escapes.
    """
    response = for_model(response)
    metadata = dict(response.metadata or {})
    if "page" in metadata:
        response = replace(response, data=metadata.pop("page"), metadata=metadata)
    # Half of a surrogate pair is hidden too: Google's SDK could not encode it, and the
    # whole request would fail.
    envelope: dict[str, Any] = json.loads(
        escaped(visible_json(response.to_json(), escape=r"\\u"))
    )
    return envelope


def visible_callables(runtime: SkillRuntime) -> list[str]:
    """Return the callables that a model may call: scripts, functions, remote skills and
    tools of MCP servers alike.
    """
    require_free_names(runtime)
    # A third-party skill with the name of one of our tools is left out: it must not end
    # the host's program.
    names = []
    for name in runtime.callable_names():
        if name not in OWN_TOOLS and not is_hidden(runtime, name):
            names.append(name)
    return names


def may_call(runtime: SkillRuntime) -> bool:
    """Return whether anything can be called, judged by the directories without reading
    a contract.
    """
    if runtime.has_functions():
        return True
    shown = runtime.catalog.for_model().values()
    # Without `Path`, which takes longer than to look at the directory.
    directories = (os.path.dirname(metadata.path) for metadata in shown)  # noqa: PTH120
    return any(map(may_have_callables, directories))


def chosen_style(runtime: SkillRuntime, style: ToolStyle | None) -> ToolStyle:
    """Return *style*; by default ``"typed"``, or above `MOST_TOOLS` callables
    ``"generic"``, with a warning.

    Raises:
        ValueError: the style is unknown.
    """
    if style in ("typed", "generic"):
        return style
    if style is not None:
        raise ValueError(f"style must be 'typed' or 'generic'; got {style!r}")
    visible = (
        name for name in runtime.iter_callable_names() if not is_hidden(runtime, name)
    )
    if len(list(islice(visible, MOST_TOOLS + 1))) <= MOST_TOOLS:
        return "typed"
    warnings.warn(
        f"there are more than {MOST_TOOLS} callable skills, more than providers "
        "accept as tools: the tools are load_skill, call_skill and "
        "read_skill_resource (style='generic'). Give style='generic' to choose this, "
        "style='typed' to have a tool for each, or a smaller catalog: "
        "catalog.select(include=[...])",
        stacklevel=3,
    )
    return "generic"


def require_runtime(value: Any) -> None:
    """Refuse a value that newcomers pass instead of a runtime, such as a catalog or a
    directory of skills.

    Raises:
        TypeError: *value* is not a `SkillRuntime`.
    """
    if not isinstance(value, SkillRuntime):
        raise TypeError(
            "expected a runtime, as SkillRuntime(discover('skills')) makes it; got "
            f"{value!r:.80}"
        )


def require_free_names(runtime: Any) -> None:
    """Refuse a runtime with a function that has the name of one of `OWN_TOOLS`, which
    would replace it.

    Raises:
        TypeError: *runtime* is not a `SkillRuntime`.
        ValueError: a function has such a name.
    """
    require_runtime(runtime)
    taken = [name for name in runtime.function_skills() if name in OWN_TOOLS]
    if taken:
        raise ValueError(
            f"the function {taken[0]!r} has the name of a tool that every agent with "
            "skills has; give it another: @skill(name=...)"
        )


def tool_list_of(style: ToolStyle) -> ToolList:
    """Return how a model calls skills in this style."""
    if style == "typed":
        return TYPED
    return FIXED


def skills_prompt(
    runtime: SkillRuntime,
    rendered: Rendered,
    tool_list: ToolList,
    *,
    is_any_callable: bool,
    by_name: str = "",
) -> str:
    """Return the system message's part about skills: how to use them, the catalog, and
    the host's functions. *is_any_callable* is the result of `may_call`, *by_name* that
    of `by_name_note`.
    """
    parts = [tool_list.how_to, rendered.text]
    if not is_any_callable:
        parts[0] = INSTRUCTIONS_ONLY
    # Typed tools describe functions already; behind call_skill a model would not know
    # that they exist.
    names = []
    if tool_list.to_schema is not None:
        names = runtime.function_skills()
    if names:
        lines = ["Functions (load one by name for its arguments):"]
        for name in names[:MAX_OFFERED_NAMES]:
            lines.append(f"- {name}: {_description(runtime, name)}")
        parts.append("\n".join(lines))
    parts.append(by_name)
    return "\n\n".join(filter(None, parts))


def unknown_tool(
    runtime: SkillRuntime, name: Any, offered: Collection[str]
) -> SkillError:
    """Return the error for a call of a tool that does not exist, or is not *offered*
    now.

    If the name contains that of a skill, the error lists the skill's callables.
    """
    wrong = f"Unknown tool {str(name)[:80]!r}"
    action = "Use one of the tools that are offered"
    skill = None
    # A hand-written loop passes on the model's text unchanged.
    if isinstance(name, str):
        skill, _ = skill_in(runtime, name)
    if skill is not None:
        wrong, action = _not_of(runtime, skill, wrong, offered)
    elif isinstance(name, str):
        nearest = meant_tool(runtime, name, {tool: tool for tool in offered}).nearest
        if nearest:
            action = _did_you_mean(nearest)
    return SkillError(
        ErrorCode.TOOL_NOT_AVAILABLE, wrong, recoverable=True, suggested_action=action
    )


def _not_of(
    runtime: SkillRuntime, skill: str, wrong: str, offered: Collection[str]
) -> tuple[str, str]:
    """Explain that *skill* does not have a tool of this name, and what to do."""
    callables: list[str] = []
    with suppress(SkillRuntimeError):
        callables = [*runtime.open_skill(skill).contracts]
    if not callables:
        return (
            f"{wrong}: nothing of the skill {skill!r} can be called",
            f"Load the skill {skill!r} and follow its instructions",
        )
    tools = [to_tool_name(name) for name in callables if to_tool_name(name) in offered]
    if tools:
        listed = ", ".join(map(repr, tools[:_MOST_LISTED]))
        return wrong, f"Use one of its tools: {listed}"
    if "call_skill" in offered:
        listed = ", ".join(callables[:_MOST_LISTED])
        return wrong, f"Call one of these with call_skill: {listed}"
    return wrong, f"Load the skill {skill!r} with load_skill first"


_MOST_LISTED = 20


def _did_you_mean(names: Sequence[str]) -> str:
    return f"Did you mean {' or '.join(repr(name) for name in names)}?"


def conversation_runtime(
    runtime: SkillRuntime,
    session: SkillSession,
    *,
    tool_list: ToolList = TYPED,
    rendered: Rendered | None = None,
    let_through: Callable[[Exception], bool] | None = None,
    load: Callable[[str], str] | None = None,
    calls_in: SkillSession | None = None,
) -> SkillRuntime:
    """Return the conversation's own tools as functions under contract.

    *rendered* is the catalog that the model sees, for the enum of ``load_skill``;
    *let_through* is as for a call. With *load*, which returns a skill's instructions,
    *session* only keeps truncated texts, because many clients share it, and skills are
    called in the session *calls_in*.
    """
    own = SkillRuntime()

    @own.implements(
        "load_skill", contract=_load_skill(_offered_names(runtime, rendered))
    )
    def load_skill(arguments: dict[str, Any]) -> SkillResponse:
        # Before anything else, so that no other error reveals that it exists.
        name = _skill_name(runtime, arguments["name"])
        if load is not None:
            return SkillResponse("success", load(name))
        text = session.activate(
            name, to_tool_name=tool_list.to_shown_name, to_schema=tool_list.to_schema
        )
        if name in runtime.catalog:
            active = session.active[runtime.catalog[name].name]
        else:
            active = session.active[name]
        # The middleware keeps both in the agent's state.
        loaded = {"name": active.name, "digest": fingerprint(active)}
        return SkillResponse("success", text, metadata={"loaded": loaded})

    @own.implements("read_skill_resource", contract=READ_RESOURCE)
    def read_skill_resource(arguments: dict[str, Any]) -> SkillResponse:
        path = arguments["path"]
        if session.has_page(path):
            return SkillResponse("success", session.read_on(path))
        name = _skill_name(runtime, arguments["name"])
        # The workspace's files and the shown directories belong to the session in which
        # skills are called.
        shown = session.show_file(name, path, called_in=calls_in)
        if shown.image is None:
            return SkillResponse("success", shown.text)
        # For `SkillSession.images`, which checks whether it is an image.
        metadata = {"resource": dict(shown.image)}
        return SkillResponse("success", shown.text, metadata=metadata)

    @own.implements("write_skill_input", contract=WRITE_INPUT)
    def write_skill_input(arguments: dict[str, Any]) -> dict[str, Any]:
        text = arguments["text"]
        path = (calls_in or session).write_input(
            arguments["path"], text, overwrite=arguments.get("overwrite", False)
        )
        return {"path": path, "bytes": len(text.encode())}

    @own.implements("search_skills", contract=_SEARCH)
    def search_skills(arguments: dict[str, Any]) -> str:
        # Functions are not indexed: they follow the ranked skills.
        query, limit = arguments["query"], arguments.get("limit", 10)
        hits = runtime.catalog.search(query, limit)
        later = ""
        if not hits.bodies_searched:
            later = f"\n{_NOT_INDEXED}"
        lines = [compact_entry(hit.name, hit.description) for hit in hits]
        for name in runtime.function_skills(query):
            lines.append(compact_entry(name, _description(runtime, name)))
        if lines:
            return "\n".join(lines[:limit]) + later
        known = [*runtime.catalog.for_model(), *runtime.function_skills()]
        guess = nearest_names(query, known, 3)
        nearest = ""
        if guess:
            nearest = f" The nearest names, which is a guess: {', '.join(guess)}."
        return (
            f"No skill matches these words.{nearest} Try other words, or load a skill "
            f"that may fit.{later}"
        )

    @own.implements("call_skill", contract=CALL_SKILL)
    async def call_skill(
        arguments: dict[str, Any], context: CallContext
    ) -> SkillResponse:
        name = _callable_name(runtime, arguments["name"])
        # One call id for both: a trace shows the skill under the tool call of the
        # model.
        return await runtime.call(
            name,
            arguments.get("arguments", {}),
            session=session if load is None else calls_in,
            version=arguments.get("version"),
            config=context.config,
            call_id=context.call_id,
            conversation=context.conversation,
            message=context.message,
            let_through=let_through,
        )

    return own


def tools_of_conversation(
    runtime: SkillRuntime,
    session: SkillSession,
    style: ToolStyle,
    rendered: Rendered,
    let_through: Callable[[Exception], bool] | None = None,
    *,
    files: bool,
) -> tuple[SkillRuntime, list[str], Definitions]:
    """Return the conversation's own tools, the names of the needed ones, and the
    callables that are tools themselves.

    Without *files*, the model does not write inputs.

    Raises:
        ValueError: two callables would share a tool name.
    """
    tool_list = tool_list_of(style)
    own = conversation_runtime(
        runtime,
        session,
        tool_list=tool_list,
        rendered=rendered,
        let_through=let_through,
    )
    callables = []
    if style != "generic":
        callables = visible_callables(runtime)
    tool_names([*callables, *OWN_TOOLS])
    definitions = choose_definitions(runtime, callables, session.active)
    names = ["load_skill", "read_skill_resource"]
    is_any_callable = may_call(runtime)
    if files and is_any_callable:
        names.append("write_skill_input")
    if not fits(rendered):
        names.append("search_skills")
    is_any_without_tool = style == "generic" or bool(definitions.by_name)
    if is_any_callable and is_any_without_tool:
        names.append("call_skill")
    return own, names, definitions


def _offered_names(runtime: SkillRuntime, rendered: Rendered | None) -> tuple[str, ...]:
    """Return the names for the enum of ``load_skill``; empty if the enum would cost
    more tokens than it saves.

    Without it the names are still in the catalog, and the answer to a wrong name
    suggests the closest ones.
    """
    if rendered is None or not fits(rendered):
        return ()
    # In an enum, because constrained decoding then cannot misspell a name.
    names = (*rendered.included, *runtime.function_skills())
    if len(names) > MAX_OFFERED_NAMES:
        return ()
    return names


def _description(runtime: SkillRuntime, name: str) -> str:
    """Return one line about a skill of functions: its own description, or the names of
    its tools.
    """
    active = runtime.open_skill(name)
    text = active.body or "Tools: " + ", ".join(active.contracts)
    line = visible_line(text)
    if len(line) > 200:
        return line[:199] + "…"
    return line


def _skill_name(runtime: SkillRuntime, sent: str) -> str:
    """Return the skill that a model means; a hidden skill counts as unknown."""
    name = meant_skill(runtime, sent) or sent
    _require_visible(runtime, name)
    return name


def _callable_name(runtime: SkillRuntime, sent: str) -> str:
    """Return the callable that a model means, or a name that the call will refuse with
    a list of the skill's callables.

    Raises:
        SkillNotFoundError: the skill is hidden, and counts as unknown.
    """
    name = meant_callable(runtime, sent)
    if name is not None:
        return name
    if is_hidden(runtime, sent):
        raise runtime.unknown_callable(sent)
    skill, tool = skill_in(runtime, sent)
    if skill is None:
        return sent
    if not tool:
        return skill
    return f"{skill}/{tool}"


def _require_visible(runtime: SkillRuntime, name: str) -> None:
    """Raise the same error for a hidden skill as for an unknown one, so that the answer
    does not reveal it.
    """
    # The catalog without it raises the error, with the suggestions that an unknown name
    # gets.
    if is_hidden(runtime, name):
        runtime.catalog.for_model().activate(name.partition("/")[0])


def _contract(
    name: str, description: str, required: list[str], /, **properties: Mapping[str, Any]
) -> Contract:
    # Hosts run read-only tools without asking. The effect of call_skill depends on the
    # skill, and the file tools write into the workspace.
    annotations = {}
    if name in ("load_skill", "search_skills"):
        annotations = {"annotations": {"read_only": True}}
    schema = {
        "type": "object",
        "required": required,
        "additionalProperties": False,
        "properties": properties,
    }
    return Contract.from_dict(
        {"name": name, "description": description, **annotations, "input": schema}
    )


def _load_skill(names: tuple[str, ...]) -> Contract:
    if not names:
        return LOAD_SKILL
    return _contract(
        "load_skill",
        LOAD_SKILL.description,
        ["name"],
        name={"type": "string", "enum": [*names]},
    )


_NAME = {"type": "string", "minLength": 1, "description": "The skill's name, as listed"}
LOAD_SKILL = _contract(
    "load_skill",
    "Load a skill: returns its instructions, its files, and what of it can be called.",
    ["name"],
    name=_NAME,
)
READ_RESOURCE = _contract(
    "read_skill_resource",
    "Read a file of a skill by the path that load_skill listed, a file that a skill "
    "made, or the rest of a text that was cut. What is not text is copied to "
    "skill-files/.",
    ["name", "path"],
    name=_NAME,
    path={
        "type": "string",
        "minLength": 1,
        "description": "Such as 'references/FORMS.md'",
    },
)
WRITE_INPUT = _contract(
    "write_skill_input",
    "Write a file below skill-files/ as an input for skills.",
    ["path", "text"],
    path={"type": "string"},
    text={"type": "string"},
    overwrite={"type": "boolean"},
)
_SEARCH = _contract(
    "search_skills",
    "Find skills by what they do; not all may be listed.",
    ["query"],
    query={
        "type": "string",
        "minLength": 1,
        "description": "What the task is about, in a few words",
    },
    limit={
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "description": "How many at most; 10 if not given",
    },
)
CALL_SKILL = _contract(
    "call_skill",
    "Call a skill's tool with arguments, as its instructions say; returns an envelope.",
    ["name"],
    name={**_NAME, "description": "What to call, such as 'pdf-processing/extract'"},
    arguments={
        "type": "object",
        "description": "The arguments, as the skill's contract says",
    },
    version={
        "type": "string",
        "description": "The version the arguments are written for, if known",
    },
)
