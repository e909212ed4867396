"""What a conversation sends under three ways of giving skills to a model, computed from a `TokenReport`.

The conversation uses each of its skills once. Questions, calls and answers cost the same in all three and are left out;
so is prompt caching.
"""

from __future__ import annotations

from dataclasses import dataclass

from skillruntime.tokens.report import TokenReport

__all__ = ["Strategy", "cheaper_from", "strategies"]

# Measured on the bundled skills with o200k_base: the definitions of load_skill (69), read_skill_resource (91) and
# call_skill (110), and the sentences in the system prompt that explain them (42).
_OWN_TOOLS = 312
# One load: the model's call (15), and around the instructions the list of files and tools (64 to 125).
_LOAD = 115
# '{"name":"","description":"","parameters":{"type":"object","properties":{}}}': a tool for a skill without a contract.
_EMPTY_TOOL = 16


@dataclass(frozen=True, slots=True)
class Strategy:
    """One way of giving skills to a model; every number but ``requests`` is in tokens.

    ``first`` and ``last`` are what the first and the last request carry, ``sent`` what all *requests* carry together.
    """

    name: str
    first: int
    last: int
    sent: int
    requests: int

    def to_dict(self) -> dict[str, object]:
        """Return the JSON object."""
        fields = ("name", "first", "last", "sent", "requests")
        return {field: getattr(self, field) for field in fields}


def strategies(report: TokenReport, used: int) -> tuple[Strategy, Strategy, Strategy]:
    """Return progressive disclosure, one tool per skill and everything in the prompt, for *used* skills of the report.

    >>> from skillruntime.tokens.report import SkillCost
    >>> pdf = SkillCost("pdf", "pdf/SKILL.md", metadata=40, body=1000)
    >>> report = TokenReport("gpt-4o", "o200k_base", True, "compact", 100, (pdf,))
    >>> [(each.name, each.last) for each in strategies(report, 1)]
    [('progressive disclosure', 1527), ('one tool per skill', 1056), ('everything in the prompt', 1040)]
    """
    number = max(len(report.skills), 1)
    used = min(used, len(report.skills))
    body = report.total("body") / number
    tools = sum(skill.schema or skill.metadata + _EMPTY_TOOL for skill in report.skills)
    start = report.catalog + _OWN_TOOLS
    # A load adds instructions and tool definitions. It is a request of its own where the skill has a tool, which the
    # next request calls; where it has none, the instructions are the answer, as with one tool per skill.
    loaded = body + report.total("schema") / number + _LOAD
    called = used * sum(bool(skill.schemas) for skill in report.skills) / number
    requests = 1 + used + called
    # The context grows by one load at a time. The requests that load carry 0 + 1 + ... + (used - 1) of them, those that
    # call 1 + 2 + ... + used, and the last one all.
    steps = used * (used + 1) / 2
    carried = (steps - used) + steps * called / max(used, 1) + used
    progressive = Strategy(
        "progressive disclosure",
        start,
        round(start + used * loaded),
        round(requests * start + loaded * carried),
        round(requests),
    )
    # The tool's first answer brings the instructions, so they need no request.
    per_skill = Strategy(
        "one tool per skill", tools, round(tools + used * body), round((used + 1) * tools + body * steps), used + 1
    )
    eager = Strategy("everything in the prompt", report.eager, report.eager, (used + 1) * report.eager, used + 1)
    return progressive, per_skill, eager


def cheaper_from(report: TokenReport) -> int | None:
    """Return from how many used skills on one tool per skill sends less than progressive disclosure.

    0 means always, None never, whatever part of the skills is used.
    """
    for used in range(len(report.skills) + 1):
        progressive, per_skill, _ = strategies(report, used)
        if per_skill.sent < progressive.sent:
            return used
    return None
