"""The tools of every conversation. They have contracts, so their malformed arguments are repaired too.

``load_skill``, ``read_skill_resource``, ``call_skill``, and, if needed, ``search_skills`` (the catalog does not fit its
budget) and ``read_on`` (a token limit may cut a text).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from skillruntime.catalog.rendering import Rendered
from skillruntime.contract.contract import Contract
from skillruntime.contract.response import SkillResponse
from skillruntime.runtime.activation import fingerprint
from skillruntime.runtime.call_options import CallOptions
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.runtime.session import SkillSession

__all__ = ["HOW_TO", "OWN_TOOLS", "conversation_runtime", "fits", "is_hidden", "offered_names", "to_text"]

OWN_TOOLS = ("load_skill", "read_skill_resource", "call_skill", "search_skills", "read_on")
"""Names that a skill's tool must not have."""

MAX_OFFERED_NAMES = 100
"""The most names that ``load_skill`` lists in its schema; each costs about seven tokens in every request."""

HOW_TO = (
    "You have skills. Before you use one, load it with load_skill and follow its instructions. "
    "A skill's tools answer in an envelope: on failure, read errors[].suggested_action and act on it."
)


def fits(rendered: Rendered) -> bool:
    """Whether the rendered catalog has every skill in full."""
    return not (rendered.shortened or rendered.name_only or rendered.omitted)


def offered_names(rendered: Rendered) -> tuple[str, ...]:
    """Return the names for the enum of ``load_skill``; none if that would cost more tokens than it saves.

    Without it the names are still in the catalog, and the answer to a wrong name suggests the closest ones.
    """
    return rendered.included if fits(rendered) and len(rendered.included) <= MAX_OFFERED_NAMES else ()


def to_text(response: SkillResponse) -> str:
    """Return an answer as a model reads it: instructions, resources and pages as plain text, anything else as JSON."""
    is_page = "read_on" in (response.metadata or {})
    if isinstance(response.data, str) and response.status == "success" and (is_page or _is_own(response)):
        return response.data
    return response.to_json()


def is_hidden(runtime: SkillRuntime, name: str) -> bool:
    """Whether *name* belongs to a skill that its author hides from models."""
    metadata = runtime.catalog.get(name.partition("/")[0])
    return metadata is not None and not metadata.model_invocable


def conversation_runtime(
    runtime: SkillRuntime,
    session: SkillSession,
    *,
    to_shown_name: Callable[[str], str] = str,
    names: tuple[str, ...] = (),
    options: Callable[[], CallOptions] | None = None,
) -> SkillRuntime:
    """Return the conversation's own tools as functions under contract.

    *to_shown_name* gives the name under which a model calls a skill's tool; *names* is the enum of ``load_skill``;
    without it any name is taken; *options* returns the options of each call that ``call_skill`` makes.
    """
    own = SkillRuntime()

    @own.implements("load_skill", contract=_load_skill(names))
    def load_skill(arguments: dict[str, Any]) -> SkillResponse:
        _require_visible(runtime, arguments["name"])
        text = session.activate(arguments["name"], to_tool_name=to_shown_name)
        skill = session.active[runtime.catalog[arguments["name"]].name]
        return SkillResponse("success", text, metadata={"loaded": {"name": skill.name, "digest": fingerprint(skill)}})

    @own.implements("read_skill_resource", contract=_READ_RESOURCE)
    def read_skill_resource(arguments: dict[str, Any]) -> str:
        _require_visible(runtime, arguments["name"])
        return session.read_resource(arguments["name"], arguments["path"])

    @own.implements("search_skills", contract=_SEARCH)
    def search_skills(arguments: dict[str, Any]) -> str:
        hits = runtime.catalog.search(arguments["query"], arguments.get("limit", 10))
        found = "\n".join(f"- {hit.name}: {hit.description}" for hit in hits)
        return found or "No skill matches these words; try other words, or continue without a skill."

    @own.implements("read_on", contract=_READ_ON)
    def read_on(arguments: dict[str, Any]) -> str:
        return session.read_on(arguments["handle"])

    @own.implements("call_skill", contract=_CALL_SKILL)
    async def call_skill(arguments: dict[str, Any]) -> SkillResponse:
        _require_visible(runtime, arguments["name"])
        asked: CallOptions = {**(options() if options is not None else {}), "version": arguments.get("version")}
        return await runtime.call(arguments["name"], arguments.get("arguments", {}), session=session, **asked)

    return own


def _is_own(response: SkillResponse) -> bool:
    return (response.metadata or {}).get("skill") in OWN_TOOLS


def _require_visible(runtime: SkillRuntime, name: str) -> None:
    """Raise for a hidden skill exactly as for an unknown one, so that the answer does not reveal it."""
    if is_hidden(runtime, name):
        runtime.catalog.for_model().activate(name.partition("/")[0])


def _contract(name: str, description: str, required: list[str], /, **properties: Mapping[str, Any]) -> Contract:
    read_only = {} if name == "call_skill" else {"annotations": {"read_only": True}}
    schema = {"type": "object", "required": required, "additionalProperties": False, "properties": properties}
    return Contract.from_dict({"name": name, "description": description, **read_only, "input": schema})


def _load_skill(names: tuple[str, ...]) -> Contract:
    if not names:
        return _LOAD_SKILL
    return _contract("load_skill", _LOAD_SKILL.description, ["name"], name={"type": "string", "enum": [*names]})


_NAME = {"type": "string", "minLength": 1, "description": "The skill's name, as listed"}
_LOAD_SKILL = _contract(
    "load_skill",
    "Load a skill: returns its instructions, its files, and what of it can be called.",
    ["name"],
    name=_NAME,
)
_READ_RESOURCE = _contract(
    "read_skill_resource",
    "Read one text file of a skill, by the path that load_skill listed.",
    ["name", "path"],
    name=_NAME,
    path={"type": "string", "minLength": 1, "description": "Such as 'references/FORMS.md'"},
)
_SEARCH = _contract(
    "search_skills",
    "Find skills by what they do; not all are listed.",
    ["query"],
    query={"type": "string", "minLength": 1, "description": "What the task is about, in a few words"},
    limit={"type": "integer", "minimum": 1, "maximum": 50, "description": "How many at most; 10 if not given"},
)
_READ_ON = _contract(
    "read_on",
    "Read the next part of a text that was cut.",
    ["handle"],
    handle={"type": "string", "minLength": 1, "description": "As given at the cut"},
)
_CALL_SKILL = _contract(
    "call_skill",
    "Call a skill's tool with arguments, as its instructions say; returns an envelope.",
    ["name"],
    name={**_NAME, "description": "What to call, such as 'pdf-processing/extract'"},
    arguments={"type": "object", "description": "The arguments, as the skill's contract says"},
    version={"type": "string", "description": "The version the arguments are written for, if known"},
)
