"""Publish the skills of a catalog with their descriptors, and run them."""

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
    AuthType,
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
from skillruntime.server.executions.outcomes import Outcome, timed_out, withdrawn
from skillruntime.server.executions.ticket import Ticket

__all__ = [
    "PublishedSkill",
    "SkillWork",
    "check_base_url",
    "describe",
    "discovery_document",
]

_STRICTNESS = (AccessPolicy.PUBLIC, AccessPolicy.RESTRICTED, AccessPolicy.PRIVATE)
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
    """A served skill: its published descriptor, and its *name* in the runtime."""

    descriptor: SkillDescriptor
    name: str
    contract: Contract
    skill: Skill | None = None

    @property
    def id(self) -> str:
        """The skill's id in its descriptor."""
        return self.descriptor.id

    @property
    def is_repeatable(self) -> bool:
        """Whether running the skill twice does no harm: its contract says that it is
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

    *written* is the skill's own descriptor.json; its texts are kept, and the server
    sets the addresses and extensions.

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
    # The contract is enforced, so its output is published: the skill's own descriptor
    # may promise less of the output, or not mention it.
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
    """Return the descriptor, without an address, of a skill without a descriptor.json.
    Its values come from the contract, or else from SKILL.md.
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
        # An id may contain a slash, but a dot reads better in a URL than %2F.
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
    public: bool = False,
) -> list[PublishedSkill]:
    """Return the served skills of the runtime's catalog: every callable, and
    instructions as knowledge.

    *names* limits it to these skills or callables. *access* applies to skills without a
    descriptor.json; an untrusted skill is at least as restrictive, whatever its
    descriptor says. *public* lets untrusted skills be public if they declare it. *auth*
    is for skills whose descriptor names no authentication. A skill whose
    descriptor.json promises what the server cannot keep is left out, and its error is
    added to *faults*; without *faults*, the error is raised.

    Raises:
        InvalidSkillError: *base_url* is not an http(s) URL, or a descriptor.json is
            invalid.
        SkillNotFoundError: one of *names* is not the name of a skill or callable.
    """
    check_base_url(base_url)
    wanted = set(names)
    wanted_skills = {name.partition("/")[0] for name in wanted}
    served: list[PublishedSkill] = []
    options = {
        "base_url": base_url,
        "access": access,
        "auth": auth,
        "provider": provider,
        "webhooks": webhooks,
    }
    for skill_name in runtime.catalog:
        # The faults of another skill must not end this call.
        if wanted and skill_name not in wanted_skills:
            continue
        try:
            skill = runtime.catalog.activate(skill_name)
        except SkillRuntimeError:
            # Discovery has reported it; the other skills are still served.
            continue
        try:
            believes = public or skill.trusted
            served += _publish_skill(skill, options, wanted, believes=believes)
        except SkillRuntimeError as error:
            if faults is None:
                raise
            faults[skill_name] = error
    _check_found(wanted, served, faults or {})
    return served


def check_base_url(base_url: str) -> None:
    """Check that descriptors can name addresses below *base_url*.

    Raises:
        InvalidSkillError: *base_url* is not an http(s) URL.
    """
    if not is_address(base_url):
        raise InvalidSkillError(
            f"The base URL {base_url!r} is not an http(s) URL such as "
            "https://skills.example.com"
        )


def _check_found(
    wanted: Iterable[str], served: Iterable[PublishedSkill], faults: Collection[str]
) -> None:
    """Check that each of the *wanted* names is the name of a skill or callable.

    Raises:
        SkillNotFoundError: a name is not found.
    """
    known = set()
    for published in served:
        known.add(published.name)
        known.add(published.name.partition("/")[0])
    missing = []
    for name in sorted(wanted):
        # A skill with a fault is not missing: its fault is reported.
        if name not in known and name.partition("/")[0] not in faults:
            missing.append(repr(name))
    if missing:
        raise SkillNotFoundError(f"No skill or callable is named {', '.join(missing)}")


def _publish_skill(
    skill: Skill, options: Mapping[str, Any], wanted: Collection[str], *, believes: bool
) -> list[PublishedSkill]:
    """Return the published callables of *skill* that are *wanted* (all if *wanted* is
    empty); for a skill without callables, return its text as knowledge.

    *believes* says whether the skill's own descriptor may make it public.

    Raises:
        InvalidSkillError: the skill's descriptor.json is invalid, or promises what the
            contract does not enforce.
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
        descriptor = _described(name, contract, skill, own, options, believes=believes)
        if own is None and not skill.contracts:
            descriptor = replace(descriptor, capability_type=CapabilityType.KNOWLEDGE)
        published.append(PublishedSkill(descriptor, name, contract, skill))
    return published


def _described(
    name: str,
    contract: Contract,
    skill: Skill,
    written: SkillDescriptor | None,
    options: Mapping[str, Any],
    *,
    believes: bool,
) -> SkillDescriptor:
    """Return the descriptor of the callable *name*, with the access that the host and
    its author allow.
    """
    if written is None:
        return describe(name, contract, skill=skill, **options)
    stated: AccessPolicy = options["access"]
    auth: AuthConfig | None = options["auth"]
    # Every author may restrict a skill. Only the host, or an author whom the host
    # trusts, may open a skill.
    access = written.access
    if not believes:
        access = max(access, stated, key=_STRICTNESS.index)
    has_own = written.auth.type is not AuthType.NONE
    is_opened = access is AccessPolicy.PUBLIC and stated is not AccessPolicy.PUBLIC
    if has_own or is_opened:
        auth = None
    return describe(
        name,
        contract,
        skill=skill,
        written=replace(written, access=access),
        **{**options, "auth": auth},
    )


def _read_descriptor(skill: Skill) -> SkillDescriptor | None:
    """Return the skill's descriptor.json, or None if the skill has none.

    Raises:
        InvalidSkillError: the descriptor is invalid, or servers cannot do what it says.
    """
    written = read_descriptor_file(skill)
    if written is None:
        return None
    # Protocols with the same MAJOR version are compatible (invocation protocol, section
    # 8), and the server publishes its own version.
    stated = written.protocol.version
    if Version.parse(stated).major != Version.parse(PROTOCOL_VERSION).major:
        message = (
            f"The descriptor.json of {skill.name} is for version {stated} of the "
            "protocol"
        )
        raise InvalidSkillError(f"{message}; this server speaks {PROTOCOL_VERSION}")
    return written


def _check_agreement(written: SkillDescriptor, contract: Contract) -> None:
    """Check that a descriptor.json agrees with the contract next to it.

    Raises:
        InvalidSkillError: the two differ; the message names the place.
    """
    # The published descriptor must agree with the enforced contract: a call that the
    # descriptor allows must never be refused.
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
        # This cannot be decided without the fast engine. The server publishes the
        # contract's output in any case.
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
    """Return the contract of a skill without callables, which is served as text to
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
    """Return the document that lists the provider and its skills (invocation protocol,
    section 5).
    """
    about = {"name": provider.name}
    if provider.url:
        about["url"] = provider.url
    return {
        "protocol": {"version": PROTOCOL_VERSION},
        "provider": about,
        "skills": [_listed(skill.descriptor) for skill in skills],
    }


def _listed(descriptor: SkillDescriptor) -> dict[str, str]:
    """Return a skill's entry in the discovery document."""
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
    """Calls skills of a `SkillRuntime` for the tickets of an `Executions`.

    An execution fails if its output has more than *output_bytes* of JSON. Without
    *skills*, runs wait for `publish`.
    """

    # The most seconds that the sandbox takes to end a script and to report its output.
    grace: float = 12.0
    calls_begins = True

    def __init__(
        self,
        runtime: SkillRuntime,
        skills: Iterable[PublishedSkill] | None = None,
        *,
        output_bytes: int = 1_000_000,
    ) -> None:
        self._runtime = runtime
        # The first session imports modules. Open it now, so that the imports do not
        # fall between the mark of an execution and its beginning.
        with runtime.session(counts_tokens=False):
            pass
        self._output_bytes = output_bytes
        self._published = anyio.Event()
        self._skills: dict[str, PublishedSkill] = {}
        if skills is not None:
            self.publish(skills)

    def publish(self, skills: Iterable[PublishedSkill]) -> None:
        """Set the skills; their addresses are known only when the server is bound to
        its port.
        """
        self._skills = {skill.descriptor.line: skill for skill in skills}
        self._published.set()

    async def __call__(self, ticket: Ticket, report: Report) -> Outcome:
        """Run the ticket's skill and return how it ended."""
        await self._published.wait()
        served = self._skills.get(ticket.line)
        if served is None:  # begun by a server with another version of the skill
            return withdrawn(ticket)
        is_text = served.descriptor.capability_type is CapabilityType.KNOWLEDGE
        if is_text and served.skill is not None:
            return _read_knowledge(served.skill, ticket.arguments)
        # Each execution has its own workspace, so callers do not see each other's
        # files. Tokens are not counted, because the answers do not go to a model, and
        # counting a megabyte's tokens takes more than a second.
        with self._runtime.session(counts_tokens=False) as session:
            response = await session.call(
                ticket.name,
                dict(ticket.arguments),
                timeout=ticket.timeout,
                caller=ticket.owner,
                on_start=getattr(report, "begins", None),
                config={
                    "report": report,
                    "execution_id": ticket.execution_id,
                    "trace_id": ticket.trace_id,
                },
            )
        outcome = to_outcome(response, self._output_bytes)
        if _is_late(response, ticket):
            return timed_out(ticket, outcome)
        return outcome


_PUBLIC = (
    "warnings",
    "repairs",
    "migrated_from",
    "files",
    "exit_code",
    "exit_meaning",
    "stderr",
)
"""The metadata that callers see; tokens, timings and the sandbox concern only the host.
"""


def _is_late(response: SkillResponse, ticket: Ticket) -> bool:
    """Return whether the deadline of *ticket* ended the skill, and not a deadline of
    the skill's own.
    """
    if not response.errors:
        return False
    error = response.errors[0]
    limit = (error.details or {}).get("timeout_seconds")
    return error.code is ErrorCode.TOOL_TIMEOUT and limit == ticket.timeout


def to_outcome(response: SkillResponse, output_bytes: int = 1_000_000) -> Outcome:
    """Return the outcome of an execution whose skill answered *response*; an output
    longer than *output_bytes* is a failure.

    The output is everything that the skill returned, including its own ``status`` and
    ``errors``. A failed response makes the execution fail with the response's first
    error code.
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
    """Return the first error of a failed response. If there are several errors, all are
    in the details.
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
    # On the wire a code may be any text, so the skill's own code is sent if the error
    # has one.
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
