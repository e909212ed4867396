"""What a server offers: a skill with its published descriptor, made of the catalog; and
the work of running it.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import anyio

from skillruntime.catalog.skill import Skill
from skillruntime.compatibility.containment import Containment
from skillruntime.contract.contract import Contract
from skillruntime.contract.document.form import may_be_repeated
from skillruntime.contract.response import SkillResponse
from skillruntime.contract.versions import Version
from skillruntime.errors import (
    ErrorCode,
    InvalidSkillError,
    SkillNotFoundError,
    SkillRuntimeError,
)
from skillruntime.remote.descriptor import (
    AccessPolicy,
    AuthConfig,
    CapabilityType,
    Extensions,
    InvocationEndpoint,
    Provider,
    SkillDescriptor,
    inputs_from_schema,
)
from skillruntime.remote.descriptor_file import read_descriptor_file
from skillruntime.remote.descriptor_parts import PROTOCOL_VERSION, is_address
from skillruntime.remote.hosts import escape_segment
from skillruntime.remote.protocol import ExecutionStatus
from skillruntime.remote.wire_errors import ErrorDocument
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.executions.executions import Report
from skillruntime.server.executions.outcomes import Outcome, withdrawn
from skillruntime.server.executions.ticket import Ticket

__all__ = ["PublishedSkill", "SkillWork", "describe", "discovery_document"]

KNOWLEDGE_INPUT = {
    "type": "object",
    "properties": {
        "path": {
            "type": "string",
            "description": "A file of the skill; without it, its instructions",
        }
    },
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class PublishedSkill:
    """A served skill: what is published of it, and its *name* in the runtime."""

    descriptor: SkillDescriptor
    name: str
    contract: Contract
    skill: Skill | None = None

    @property
    def id(self) -> str:
        """The id in its descriptor."""
        return self.descriptor.id

    @property
    def is_repeatable(self) -> bool:
        """Whether running it twice does no harm: by its contract it is idempotent, or
        only reads.
        """
        return may_be_repeated(self.contract.annotations)


def describe(
    name: str,
    contract: Contract,
    *,
    base_url: str,
    skill: Skill | None = None,
    provider: Provider | None = None,
    access: AccessPolicy = AccessPolicy.PUBLIC,
    auth: AuthConfig | None = None,
    written: SkillDescriptor | None = None,
    wait_seconds: float = 30.0,
    poll_interval_ms: int = 250,
    webhooks: bool = False,
) -> SkillDescriptor:
    """Return the descriptor of a local skill, as a server at *base_url* publishes it.

    *written* is the skill's own descriptor.json, whose words are kept; the addresses
    and extensions are the server's.

    >>> contract = Contract.from_dict({"version": "1.0.0", "description": "Says it", "input": {"type": "object"}})
    >>> describe("echo", contract, base_url="http://localhost:8400").endpoint.url
    'http://localhost:8400/skills/echo/invoke'
    """
    base = base_url.rstrip("/")
    inputs, is_whole = inputs_from_schema(contract.input.document)
    timeout = contract.run.get("timeout_seconds")
    stated = [] if timeout is None else [max(1, round(timeout * 1000))]
    if written is None:
        written = SkillDescriptor(
            # A slash is allowed in an id, but a dot reads better in a URL than %2F.
            id=name.replace("/", "."),
            name=name,
            version=contract.version
            or (skill.version if skill is not None else None)
            or "0.0.0",
            description=contract.description
            or (skill.description if skill is not None else ""),
            provider=provider or Provider("skillruntime"),
            endpoint=InvocationEndpoint(base),
            inputs=inputs,
            access=access,
            tags=skill.frontmatter.tags if skill is not None else (),
        )
    elif written.endpoint.timeout_ms is not None:
        stated.append(written.endpoint.timeout_ms)
    extensions = Extensions(
        annotations=dict(contract.annotations) or written.extensions.annotations,
        input_schema=None
        if is_whole or not isinstance(contract.input.document, dict)
        else contract.input.document,
        idempotency_key=True,
        cancel=True,
        wait_seconds=wait_seconds,
        poll_interval_ms=poll_interval_ms,
        executions_url=f"{base}/executions",
        webhooks=webhooks,
    )
    endpoint = InvocationEndpoint(
        f"{base}/skills/{escape_segment(written.id)}/invoke",
        status_url=f"{base}/executions/{{execution_id}}",
        result_url=f"{base}/executions/{{execution_id}}/result",
        timeout_ms=min(stated, default=None),
        retry=written.endpoint.retry,
    )
    # What is enforced: a descriptor may promise less of the output, or say nothing of
    # it.
    promised = (
        written.output.schema if contract.output is None else contract.output.document
    )
    return replace(
        written,
        protocol=replace(written.protocol, version=PROTOCOL_VERSION),
        endpoint=endpoint,
        output=replace(written.output, schema=promised),
        extensions=extensions,
        auth=auth or written.auth,
    )


def serve_catalog(
    runtime: SkillRuntime,
    *,
    base_url: str,
    names: Iterable[str] = (),
    access: AccessPolicy = AccessPolicy.PUBLIC,
    auth: AuthConfig | None = None,
    provider: Provider | None = None,
    webhooks: bool = False,
    faults: dict[str, SkillRuntimeError] | None = None,
) -> list[PublishedSkill]:
    """Return what can be served of the runtime's catalog: every callable, and
    instructions as knowledge.

    *names* limits it to these skills or callables. A skill whose descriptor.json cannot
    be kept is left out, with its error in *faults*; without *faults*, that error is
    raised.

    Raises:
        InvalidSkillError: *base_url* is not an http(s) URL, or a descriptor.json is
            invalid. SkillNotFoundError: there is nothing under one of *names*.
    """
    if not is_address(base_url):
        raise InvalidSkillError(
            f"The base URL {base_url!r} is not an http(s) URL such as "
            "https://skills.example.com"
        )
    wanted = set(names)
    served: list[PublishedSkill] = []
    options = {
        "base_url": base_url,
        "access": access,
        "auth": auth,
        "provider": provider,
        "webhooks": webhooks,
    }
    for skill_name in runtime.catalog:
        try:
            skill = runtime.catalog.activate(skill_name)
        # Discovery has reported it; one broken skill does not keep the others from
        # being served.
        except SkillRuntimeError:
            continue
        try:
            served += _publish_skill(skill, options, wanted)
        except SkillRuntimeError as error:
            if faults is None:
                raise
            faults[skill_name] = error
    found = {
        *(each.name for each in served),
        *(each.name.partition("/")[0] for each in served),
        *(faults or ()),
    }
    missing = {
        name for name in wanted - found if name.partition("/")[0] not in (faults or ())
    }
    if missing:
        raise SkillNotFoundError(
            f"No skill or callable is named {', '.join(map(repr, sorted(missing)))}"
        )
    return served


def _publish_skill(
    skill: Skill, options: Mapping[str, Any], wanted: Collection[str]
) -> list[PublishedSkill]:
    """Return what of *skill* is served, of its callables those that are *wanted*.

    Raises:
        InvalidSkillError: its descriptor.json is invalid, or promises what the contract
            does not enforce.
    """
    written = _read_descriptor(skill)
    contracts = dict(skill.contracts) or {
        skill.name: _knowledge_contract(skill, written)
    }
    published = []
    for name, contract in contracts.items():
        if wanted and name not in wanted and skill.name not in wanted:
            continue
        own = written if name == skill.name else None
        if own is not None and skill.contracts:
            _check_agreement(own, contract)
        descriptor = describe(name, contract, skill=skill, written=own, **options)
        if own is None and not skill.contracts:
            descriptor = replace(descriptor, capability_type=CapabilityType.KNOWLEDGE)
        published.append(PublishedSkill(descriptor, name, contract, skill))
    return published


def _read_descriptor(skill: Skill) -> SkillDescriptor | None:
    """Return the skill's descriptor.json, None if it has none.

    Raises:
        InvalidSkillError: it is invalid, or no server can do what it says.
    """
    written = read_descriptor_file(skill)
    if written is None:
        return None
    # Compatible is the same MAJOR (section 8); the version that is published is the
    # server's own.
    if (
        Version.parse(written.protocol.version).major
        != Version.parse(PROTOCOL_VERSION).major
    ):
        message = (
            f"The descriptor.json of {skill.name} is for version "
            f"{written.protocol.version} of the protocol"
        )
        raise InvalidSkillError(f"{message}; this server speaks {PROTOCOL_VERSION}")
    return written


def _check_agreement(written: SkillDescriptor, contract: Contract) -> None:
    """Check that a descriptor.json promises what the contract next to it enforces.

    Raises:
        InvalidSkillError: they differ; the message names where.
    """
    # What is published is what is enforced: a caller must never be refused for what the
    # descriptor promises.
    differences = [] if contract.version in (None, written.version) else ["version"]
    asked = contract.input.document
    if isinstance(asked, dict):
        promised = written.input_schema()
        differences += _differing_inputs(promised, asked)
        if sorted(promised.get("required", [])) != sorted(asked.get("required", [])):
            differences.append("required inputs")
    if written.output.schema is not None and _breaks_promise(
        written.output.schema, contract
    ):
        differences.append("output")
    if differences:
        message = (
            f"The descriptor.json and the contract of {contract.name} differ in "
            f"{', '.join(differences)}"
        )
        raise InvalidSkillError(message, details={"differences": differences})


def _breaks_promise(promised: Any, contract: Contract) -> bool:
    """Whether the contract certainly lets outputs through that the descriptor does not
    promise.
    """
    if contract.output is None:
        return promised not in (True, {})
    try:
        return Containment().answer(promised, contract.output.document) == "no"
    except ImportError:
        # undecided without the fast engine; what is published of the output is the
        # contract's own
        return False


def _differing_inputs(promised: dict[str, Any], enforced: dict[str, Any]) -> list[str]:
    theirs, ours = promised.get("properties", {}), enforced.get("properties", {})
    return [
        f"inputs/{name}"
        for name in sorted({*theirs, *ours})
        if _essence(theirs.get(name)) != _essence(ours.get(name))
    ]


def _essence(schema: Any) -> Any:
    """What a schema asks for, without what it only says."""
    spoken = ("title", "description", "examples", "$comment")
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if name not in spoken}


def _knowledge_contract(skill: Skill, written: SkillDescriptor | None) -> Contract:
    """Return the contract of a skill without anything to call, which is served as what
    it is: text to read.
    """
    if written is not None:
        return Contract.from_dict(written.to_contract().to_dict(), name=skill.name)
    document = {
        "description": skill.description,
        "version": skill.version or "0.0.0",
        "input": KNOWLEDGE_INPUT,
        "annotations": {"read_only": True, "idempotent": True},
    }
    return Contract.from_dict(document, name=skill.name)


def discovery_document(
    provider: Provider, skills: Iterable[PublishedSkill]
) -> dict[str, Any]:
    """Return the document of section 5: what there is."""
    return {
        "protocol": {"version": PROTOCOL_VERSION},
        "provider": {
            "name": provider.name,
            **({"url": provider.url} if provider.url else {}),
        },
        "skills": [
            {
                "id": each.id,
                "name": each.descriptor.name,
                "capability_type": each.descriptor.capability_type.value,
                "description": each.descriptor.description,
                "descriptor_url": each.descriptor.endpoint.url.removesuffix("/invoke"),
                "access": each.descriptor.access.value,
                "version": each.descriptor.version,
            }
            for each in skills
        ],
    }


class SkillWork:
    """Runs tickets in a `SkillRuntime`: the work of an `Executions`.

    An output of more than *output_bytes* of JSON makes its execution fail. Without
    *skills*, runs wait for `publish`.
    """

    def __init__(
        self,
        runtime: SkillRuntime,
        skills: Iterable[PublishedSkill] | None = None,
        *,
        output_bytes: int = 1_000_000,
    ) -> None:
        self._runtime = runtime
        # The first session imports modules: not between the mark of an execution and
        # its beginning.
        with runtime.session(counts_tokens=False):
            pass
        self._output_bytes = output_bytes
        self._published = anyio.Event()
        self._skills: dict[str, PublishedSkill] = {}
        if skills is not None:
            self.publish(skills)

    def publish(self, skills: Iterable[PublishedSkill]) -> None:
        """Set the skills, whose addresses are known only when the server is bound to
        its port.
        """
        self._skills = {each.descriptor.line: each for each in skills}
        self._published.set()

    async def __call__(self, ticket: Ticket, report: Report) -> Outcome:
        """Run the ticket's skill, and say how it ended."""
        await self._published.wait()
        served = self._skills.get(ticket.line)
        if served is None:  # begun by a server that had another version of the skill
            return withdrawn(ticket)
        if (
            served.descriptor.capability_type is CapabilityType.KNOWLEDGE
            and served.skill is not None
        ):
            return _read_knowledge(served.skill, ticket.arguments)
        # A workspace of its own for each execution: no caller sees another's files. No
        # model reads its answers here, and counting the tokens of a megabyte takes more
        # than a second.
        with self._runtime.session(counts_tokens=False) as session:
            response = await session.call(
                ticket.name,
                dict(ticket.arguments),
                # The execution's own deadline comes first; this one is what the skill
                # sees.
                timeout=ticket.timeout + 1,
                caller=ticket.owner,
                config={
                    "report": report,
                    "execution_id": ticket.execution_id,
                    "trace_id": ticket.trace_id,
                },
            )
        return to_outcome(response, self._output_bytes)


def to_outcome(response: SkillResponse, output_bytes: int = 1_000_000) -> Outcome:
    """Return how an execution ended whose skill answered *response*; a longer output
    than *output_bytes* is a failure.

    What the skill gave lies whole in the output, its own ``status`` and ``errors`` too;
    an answer that failed makes the execution fail, with its first code.
    """
    # Tokens, timings and the sandbox are the host's own business.
    public = ("warnings", "repairs", "migrated_from", "files")
    metadata = {
        key: value for key, value in (response.metadata or {}).items() if key in public
    }
    has_output = response.data is not None or response.ok
    output, length = _plain(response.data)
    if length > output_bytes:
        message = (
            f"The output has {length:,} bytes of JSON; this server keeps "
            f"{output_bytes:,} at most"
        )
        error = ErrorDocument(ErrorCode.INVALID_OUTPUT, message, {"recoverable": False})
        return Outcome(ExecutionStatus.FAILED, error=error, metadata=metadata)
    if response.ok:
        return Outcome(ExecutionStatus.COMPLETED, output, True, metadata=metadata)
    errors = response.errors
    first: dict[str, Any] = (
        errors[0].to_dict()
        if errors
        else {"code": ErrorCode.INTERNAL_ERROR.value, "message": "The skill failed"}
    )
    details: dict[str, Any] = dict(first.get("details") or {})
    # A client decides by this whether to try again; the protocol documents have no
    # field for it.
    details["recoverable"] = bool(first.get("recoverable"))
    if first.get("suggested_action"):
        details["suggested_action"] = first["suggested_action"]
    if len(errors) > 1:
        details["errors"] = [error.to_dict() for error in errors]
    own = details.get(
        "code"
    )  # on the wire a code is a text: the skill's own, where we have no name for it
    error = ErrorDocument(
        own if isinstance(own, str) and own else first["code"],
        first["message"],
        _plain(details)[0],
    )
    return Outcome(ExecutionStatus.FAILED, output, has_output, error, metadata)


def _read_knowledge(skill: Skill, arguments: Mapping[str, Any]) -> Outcome:
    path = arguments.get("path")
    try:
        text = skill.read_resource(path) if path else skill.body
    except SkillRuntimeError as error:
        return to_outcome(SkillResponse.failed(*error.to_errors()))
    return Outcome(ExecutionStatus.COMPLETED, {"text": text}, True)


def _plain(value: Any) -> tuple[Any, int]:
    """Return *value* as JSON has it, for a Python function may return tuples and dates;
    and its bytes as JSON.
    """
    # What a caller sees, and what is stored, is this text: a Python value that JSON
    # lacks is shown as its str.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text), len(text.encode("utf-8", "surrogatepass"))
