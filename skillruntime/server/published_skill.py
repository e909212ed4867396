"""What a server offers: the skills of a catalog with their published descriptors, and
the work that runs them.
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
        """Whether running it twice does no harm: its contract says that it is
        idempotent, or only reads data.
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

    >>> contract = Contract.from_dict({"version": "1.0.0", "input": {}})
    >>> describe("echo", contract, base_url="http://localhost:8400").endpoint.url
    'http://localhost:8400/skills/echo/invoke'
    """
    base = base_url.rstrip("/")
    if written is None:
        written = _default_descriptor(
            name,
            contract,
            skill,
            provider=provider or Provider("skillruntime"),
            access=access,
        )
    # The whole schema is published only if `inputs` cannot express it.
    schema = contract.input.document
    _, is_whole = inputs_from_schema(schema)
    input_schema = None
    if not is_whole and isinstance(schema, dict):
        input_schema = schema
    extensions = Extensions(
        annotations=dict(contract.annotations) or written.extensions.annotations,
        input_schema=input_schema,
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
        timeout_ms=_timeout_ms(contract, written),
        retry=written.endpoint.retry,
    )
    # The contract is enforced, so its output is published: a written descriptor may
    # promise less of the output, or not mention it.
    output = written.output
    if contract.output is not None:
        output = replace(output, schema=contract.output.document)
    return replace(
        written,
        protocol=replace(written.protocol, version=PROTOCOL_VERSION),
        endpoint=endpoint,
        output=output,
        extensions=extensions,
        auth=auth or written.auth,
    )


def _default_descriptor(
    name: str,
    contract: Contract,
    skill: Skill | None,
    *,
    provider: Provider,
    access: AccessPolicy,
) -> SkillDescriptor:
    """Return the descriptor of a skill without a descriptor.json, without an address:
    from its contract, and from SKILL.md where the contract has no value.
    """
    version = contract.version
    description = contract.description
    tags: tuple[str, ...] = ()
    if skill is not None:
        version = version or skill.version
        description = description or skill.description
        tags = skill.frontmatter.tags
    inputs, _ = inputs_from_schema(contract.input.document)
    return SkillDescriptor(
        # A slash is allowed in an id, but a dot reads better in a URL than %2F.
        id=name.replace("/", "."),
        name=name,
        version=version or "0.0.0",
        description=description,
        provider=provider,
        endpoint=InvocationEndpoint(""),
        inputs=inputs,
        access=access,
        tags=tags,
    )


def _timeout_ms(contract: Contract, written: SkillDescriptor) -> int | None:
    """Return the smaller of the timeouts in the contract and the descriptor."""
    timeouts = []
    seconds = contract.run.get("timeout_seconds")
    if seconds is not None:
        timeouts.append(max(1, round(seconds * 1000)))
    if written.endpoint.timeout_ms is not None:
        timeouts.append(written.endpoint.timeout_ms)
    return min(timeouts, default=None)


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
            invalid.
        SkillNotFoundError: there is nothing under one of *names*.
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
        except SkillRuntimeError:
            # Discovery has reported it; the other skills are still served.
            continue
        try:
            served += _publish_skill(skill, options, wanted)
        except SkillRuntimeError as error:
            if faults is None:
                raise
            faults[skill_name] = error
    _check_found(wanted, served, faults or {})
    return served


def _check_found(
    wanted: Iterable[str], served: Iterable[PublishedSkill], faults: Collection[str]
) -> None:
    """Check that there is a skill or a callable under each of the *wanted* names.

    Raises:
        SkillNotFoundError: there is not.
    """
    known = set()
    for published in served:
        known.add(published.name)
        known.add(published.name.partition("/")[0])
    missing = []
    for name in sorted(wanted):
        # A skill that has a fault is not missing: its fault is reported.
        if name not in known and name.partition("/")[0] not in faults:
            missing.append(repr(name))
    if missing:
        raise SkillNotFoundError(f"No skill or callable is named {', '.join(missing)}")


def _publish_skill(
    skill: Skill, options: Mapping[str, Any], wanted: Collection[str]
) -> list[PublishedSkill]:
    """Return the callables of *skill* that are *wanted*, all where nothing is named; of
    a skill without callables, its text.

    Raises:
        InvalidSkillError: its descriptor.json is invalid, or promises what the contract
            does not enforce.
    """
    written = _read_descriptor(skill)
    contracts = dict(skill.contracts)
    if not contracts:
        contracts = {skill.name: _knowledge_contract(skill, written)}
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
    # The same MAJOR is compatible (section 8); the version that is published is the
    # server's own.
    stated = written.protocol.version
    if Version.parse(stated).major != Version.parse(PROTOCOL_VERSION).major:
        message = (
            f"The descriptor.json of {skill.name} is for version {stated} of the "
            "protocol"
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
    differences = []
    if contract.version not in (None, written.version):
        differences.append("version")
    enforced = contract.input.document
    if isinstance(enforced, dict):
        promised = written.input_schema()
        differences += _differing_inputs(promised, enforced)
        if sorted(promised.get("required", [])) != sorted(enforced.get("required", [])):
            differences.append("required inputs")
    output = written.output.schema
    if output is not None and _breaks_promise(output, contract):
        differences.append("output")
    if differences:
        message = (
            f"The descriptor.json and the contract of {contract.name} differ in "
            f"{', '.join(differences)}"
        )
        raise InvalidSkillError(message, details={"differences": differences})


def _breaks_promise(promised: Any, contract: Contract) -> bool:
    """Return whether the contract certainly allows outputs that the descriptor does not
    promise.
    """
    if contract.output is None:
        return promised not in (True, {})
    try:
        return Containment().answer(promised, contract.output.document) == "no"
    except ImportError:
        # It cannot be decided without the fast engine. The output that is published is
        # the contract's in any case.
        return False


def _differing_inputs(promised: dict[str, Any], enforced: dict[str, Any]) -> list[str]:
    theirs = promised.get("properties", {})
    ours = enforced.get("properties", {})
    return [
        f"inputs/{name}"
        for name in sorted({*theirs, *ours})
        if _constraints(theirs.get(name)) != _constraints(ours.get(name))
    ]


def _constraints(schema: Any) -> Any:
    """Return *schema* without the keywords that do not affect which values are
    valid.
    """
    texts = ("title", "description", "examples", "$comment")
    if not isinstance(schema, dict):
        return schema
    return {name: value for name, value in schema.items() if name not in texts}


def _knowledge_contract(skill: Skill, written: SkillDescriptor | None) -> Contract:
    """Return the contract of a skill that has nothing to call: it is served as text to
    read.
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
    """Return the document of section 5: the provider and its skills."""
    about = {"name": provider.name}
    if provider.url:
        about["url"] = provider.url
    return {
        "protocol": {"version": PROTOCOL_VERSION},
        "provider": about,
        "skills": [_listed(skill.descriptor) for skill in skills],
    }


def _listed(descriptor: SkillDescriptor) -> dict[str, str]:
    """Return a skill as the discovery document lists it."""
    return {
        "id": descriptor.id,
        "name": descriptor.name,
        "capability_type": descriptor.capability_type.value,
        "description": descriptor.description,
        "descriptor_url": descriptor.endpoint.url.removesuffix("/invoke"),
        "access": descriptor.access.value,
        "version": descriptor.version,
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
        self._skills = {skill.descriptor.line: skill for skill in skills}
        self._published.set()

    async def __call__(self, ticket: Ticket, report: Report) -> Outcome:
        """Run the ticket's skill and return how it ended."""
        await self._published.wait()
        served = self._skills.get(ticket.line)
        if served is None:  # begun by a server that had another version of the skill
            return withdrawn(ticket)
        is_text = served.descriptor.capability_type is CapabilityType.KNOWLEDGE
        if is_text and served.skill is not None:
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


_PUBLIC = (
    "warnings",
    "repairs",
    "migrated_from",
    "files",
    "exit_code",
    "exit_meaning",
    "stderr",
)
"""What callers see of the metadata: tokens, timings and the sandbox are the host's own
business.
"""


def to_outcome(response: SkillResponse, output_bytes: int = 1_000_000) -> Outcome:
    """Return the outcome of an execution whose skill answered *response*; an output
    longer than *output_bytes* is a failure.

    The output is everything that the skill returned, including its own ``status`` and
    ``errors``. A failed response makes the execution fail with its first error code.
    """
    stated = response.metadata or {}
    metadata = {name: value for name, value in stated.items() if name in _PUBLIC}
    output, length = _plain(response.data)
    message = (
        f"The output has {length:,} bytes of JSON; this server keeps "
        f"{output_bytes:,} at most"
    )
    is_too_long = length > output_bytes
    if is_too_long and response.ok:
        error = ErrorDocument(ErrorCode.INVALID_OUTPUT, message, {"recoverable": False})
        return Outcome(ExecutionStatus.FAILED, error=error, metadata=metadata)
    if response.ok:
        return Outcome(ExecutionStatus.COMPLETED, output, True, metadata=metadata)
    if is_too_long:
        output = None
        metadata["warnings"] = [*metadata.get("warnings", ()), message]
    has_output = output is not None
    error = _failure_of(response)
    return Outcome(ExecutionStatus.FAILED, output, has_output, error, metadata)


def _failure_of(response: SkillResponse) -> ErrorDocument:
    """Return the error of a response that failed: its first one. If there are several,
    all are in the details.
    """
    errors = response.errors
    if not errors:
        return ErrorDocument(
            ErrorCode.INTERNAL_ERROR.value, "The skill failed", {"recoverable": False}
        )
    first = errors[0].to_dict()
    details: dict[str, Any] = dict(first.get("details") or {})
    # A client decides by ``recoverable`` whether to try again; the protocol documents
    # have no field for it.
    details["recoverable"] = bool(first.get("recoverable"))
    if first.get("suggested_action"):
        details["suggested_action"] = first["suggested_action"]
    if len(errors) > 1:
        details["errors"] = [error.to_dict() for error in errors]
    # On the wire a code may be any text, so the skill's own code is sent if it has one.
    code = details.get("code")
    if not isinstance(code, str) or not code:
        code = first["code"]
    return ErrorDocument(code, first["message"], _plain(details)[0])


def _read_knowledge(skill: Skill, arguments: Mapping[str, Any]) -> Outcome:
    path = arguments.get("path")
    try:
        if path:
            text = skill.read_resource(path)
        else:
            text = skill.body
    except SkillRuntimeError as error:
        return to_outcome(SkillResponse.failed(*error.to_errors()))
    return Outcome(ExecutionStatus.COMPLETED, {"text": text}, True)


def _plain(value: Any) -> tuple[Any, int]:
    """Return *value* converted to JSON types, and the size of its JSON in bytes."""
    # A Python function may return tuples and dates. A value that JSON lacks becomes its
    # str, both in the store and for callers.
    text = json.dumps(value, ensure_ascii=False, default=str)
    return json.loads(text), len(text.encode("utf-8", "surrogatepass"))
