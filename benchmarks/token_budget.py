"""What skills cost a conversation in tokens: progressive disclosure against loading
everything, measured offline.

    python benchmarks/token_budget.py PATH... [--calls CALLS.jsonl] [--json FILE]
    [--html FILE] [--png DIRECTORY]

PATH is a directory of skills, or an archive (.tar.gz) of them; folders named
``malformed`` in an archive are left out. Every text is the real one: what the catalog
renders, what a session answers, what the envelope says. Every figure is in tokens of
one model.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skill_roots import skill_roots
from token_budget_peers import PEERS

from skillruntime.adapters.langchain import DEFAULT_CATALOG_TOKENS, SkillToolkit
from skillruntime.adapters.tools.conversation_tools import fits
from skillruntime.catalog import SkillCatalog, discover
from skillruntime.contract import Contract, SkillResponse
from skillruntime.errors import SkillInputError
from skillruntime.runtime import SkillRuntime
from skillruntime.tokens import TokenReport, count, count_tools, for_model, measure

STYLES = ("compact", "xml", "markdown", "json", "reference")
SIZES = (10, 30, 100, 300, 1_000, 3_000, 10_000)
ACTIVATIONS = (1, 3, 10)
CATALOG_BUDGET = 8_000

# The one made-up skill of the scripted conversations: its real contract, a malformed
# call, the corrected call.
DIGEST = {
    "description": "Collects recent news on the topics given.",
    "input": {
        "type": "object",
        "required": ["topics"],
        "additionalProperties": False,
        "properties": {
            "topics": {
                "type": "array",
                "items": {"type": "string"},
                "minItems": 1,
                "description": "What to look for.",
            },
            "max_articles": {
                "type": "integer",
                "minimum": 1,
                "maximum": 20,
                "description": "How many for each topic.",
            },
        },
    },
}
MALFORMED = {"topics": ["AI regulation"], "max_articles": "a few"}
CORRECTED = {"topics": ["AI regulation"], "max_articles": 5}
QUESTION = (
    "Please prepare this week's summary of news about AI regulation and send me the "
    "key points."
)
RESULT = {
    "articles": [
        {
            "title": f"Article number {n} about AI regulation",
            "source": "The Example Times",
        }
        for n in range(5)
    ]
}


@dataclass
class Context:
    """What a conversation's next request would carry, by tier, and what all requests so
    far have carried.
    """

    held: dict[str, int] = field(default_factory=dict)
    carried: dict[str, int] = field(default_factory=dict)
    requests: int = 0

    def add(self, tier: str, tokens: int) -> None:
        self.held[tier] = self.held.get(tier, 0) + tokens

    def request(self) -> None:
        self.requests += 1
        for tier, tokens in self.held.items():
            self.carried[tier] = self.carried.get(tier, 0) + tokens

    def to_dict(self) -> dict[str, Any]:
        total = sum(self.carried.values())
        return {
            "requests": self.requests,
            "total": total,
            "last_request": sum(self.held.values()),
            "held": self.held,
            "tiers": self.carried,
        }


class Bench:
    """One run over one catalog, with one model's tokens."""

    def __init__(self, catalog: SkillCatalog, model: str, calls: Path | None) -> None:
        self.catalog = catalog
        self.model = model
        self.calls = calls

    def tokens(self, text: str) -> int:
        return count(text, self.model).tokens

    def run(self) -> dict[str, Any]:
        say("measuring every skill")
        report = measure(self.catalog, model=self.model)
        skills = [skill for skill in report.skills if skill.body]
        result: dict[str, Any] = {
            "unit": "tokens",
            "model": self.model,
            "method": report.method,
            "exact": report.exact,
            "corpus": report.to_dict()["totals"],
            "distribution": self.distribution(report),
        }
        say("styles and peers")
        with tempfile.TemporaryDirectory() as folder:
            result["styles"] = self.styles(Path(folder))
        say("scripted conversations")
        result["conversations"] = [
            self.conversation(self.catalog, report, number) for number in ACTIVATIONS
        ]
        say("growth")
        with tempfile.TemporaryDirectory() as folder:
            result["growth"] = list(self.growth(report, Path(folder)))
        if self.calls:
            say("errors")
            result["errors"] = self.errors(self.calls)
        result["targets"] = targets(result)
        result["skills"] = [
            {"name": skill.name, "metadata": skill.metadata, "body": skill.body}
            for skill in skills
        ]
        return result

    def distribution(self, report: TokenReport) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for tier in ("metadata", "body"):
            values = sorted(getattr(skill, tier) for skill in report.skills)
            cuts = (
                statistics.quantiles(values, n=100, method="inclusive")
                if len(values) > 1
                else values * 99
            )
            document[tier] = {
                "min": values[0],
                "median": round(cuts[49]),
                "mean": round(statistics.fmean(values)),
                "p90": round(cuts[89]),
                "p99": round(cuts[98]),
                "max": values[-1],
                "largest": [
                    {"name": skill.name, "tokens": getattr(skill, tier)}
                    for skill in sorted(
                        report.skills, key=lambda skill: -getattr(skill, tier)
                    )[:8]
                ],
            }
        document["bodies_over_5000"] = sum(skill.body > 5000 for skill in report.skills)
        return document

    def styles(self, folder: Path) -> list[dict[str, Any]]:
        """List the same skills in every way: staged with their names and descriptions
        only, which all can read.
        """
        for name in self.catalog:
            stage(folder / "skills", self.catalog, name, 0)
        catalog = discover(folder / "skills")
        entries = [
            (meta.name, meta.description, str(meta.path)) for meta in catalog.values()
        ]
        bare = sum(
            self.tokens(name) + self.tokens(description)
            for name, description, _ in entries
        )
        toolkit = SkillToolkit(SkillRuntime(catalog), style="generic")
        standing = self.tokens(toolkit.system_prompt()) - self.tokens(
            catalog.to_prompt()
        )
        here, there = (
            str(folder.resolve()),
            "/home/user/.agents",
        )  # a path of the same length on every machine

        def at_home(text: str) -> int:
            return self.tokens(text.replace(str(folder), there).replace(here, there))

        rows: list[dict[str, Any]] = [
            {
                "name": style,
                "ours": True,
                "tokens": at_home(catalog.to_prompt(style)),
                "standing": standing,
            }
            for style in STYLES
        ]
        for name, render in PEERS.items():
            try:
                rendered = render(entries)
            except ImportError:
                continue
            tokens, said = at_home(rendered.listing), self.tokens(rendered.standing)
            label = (
                name if name.startswith("skills-ref") else f"{name} {rendered.version}"
            )
            rows.append(
                {
                    "name": label,
                    "ours": False,
                    "tokens": tokens,
                    "standing": said,
                    "version": rendered.version,
                }
            )
        for row in rows:
            row["above_per_skill"] = round((row["tokens"] - bare) / len(entries), 2)
        return rows

    def conversation(
        self, catalog: SkillCatalog, report: TokenReport, activations: int
    ) -> dict[str, Any]:
        """Play one conversation under each strategy: so many skills, a repeat and a
        refusal for every three.
        """
        by_size = sorted(report.skills, key=lambda skill: (skill.body, skill.name))
        activations = min(activations, len(by_size))
        step = len(by_size) / activations
        chosen = [
            by_size[int((number + 0.5) * step)].name for number in range(activations)
        ]
        metadata = report.total("metadata")
        played = {
            "progressive": self.progressive(catalog, chosen, metadata),
            "budgeted": self.progressive(
                catalog, chosen, metadata, DEFAULT_CATALOG_TOKENS
            ),
            "tool_per_skill": self.tool_per_skill(catalog, report, chosen, metadata),
            "eager": self.eager(report, chosen),
        }
        ours = played["progressive"]["tiers"]
        base = ours["names and descriptions"] + ours["bodies"]
        session = digest_runtime(catalog).session()
        repeats = [
            (session.activate(name), self.tokens(session.activate(name)))[1]
            for name in chosen
        ]
        session.close()
        return {
            "activations": activations,
            "skills": len(report.skills),
            "activated": chosen,
            "repeat": max(repeats),
            "added_share": round(ours["frame, tools and notices"] / base, 5),
            "strategies": played,
        }

    def progressive(
        self,
        catalog: SkillCatalog,
        chosen: list[str],
        metadata: int,
        budget: int | None = None,
    ) -> dict[str, Any]:
        """Load what is needed; with a *budget* for the catalog, a skill that it leaves
        out is searched for first.
        """
        runtime = digest_runtime(catalog)
        session = runtime.session()
        toolkit = SkillToolkit(
            runtime, session=session, style="generic", catalog_tokens=budget
        )
        rendered = session.fit_catalog(budget)
        listed = metadata if fits(rendered) else self.tokens(rendered.text)
        context = Context()
        context.add("names and descriptions", listed)
        frame = self.tokens(toolkit.system_prompt()) - listed
        context.add("frame, tools and notices", frame + self.definitions(toolkit))
        context.add("question, calls and answers", self.tokens(QUESTION))
        for number, name in enumerate(chosen):
            if not fits(rendered) and name not in rendered.included:
                context.request()
                context.add("frame, tools and notices", self.searching(toolkit, name))
            for repeated in range(2 if number % 3 == 0 else 1):
                context.request()
                text = session.activate(name)
                body = 0 if repeated else self.tokens(catalog.activate(name).body)
                context.add("bodies", body)
                call = self.call("load_skill", {"name": name})
                context.add("frame, tools and notices", call + self.tokens(text) - body)
            self.calling(context, refused=number % 3 == 0)
        context.request()
        session.close()
        return context.to_dict()

    def tool_per_skill(
        self,
        catalog: SkillCatalog,
        report: TokenReport,
        chosen: list[str],
        metadata: int,
    ) -> dict[str, Any]:
        """Every skill is a tool; one without a contract gets the digest's schema, so
        that each has a full one.
        """
        context = Context()
        definitions = []
        for name, meta in catalog.items():
            contracts = catalog.activate(name).contracts
            schema = next(
                (contract.input.document for contract in contracts.values()),
                DIGEST["input"],
            )
            definitions.append(
                {
                    "name": name,
                    "description": meta.description,
                    "parameters": for_model(schema),
                }
            )
        context.add("names and descriptions", metadata)
        context.add(
            "frame, tools and notices",
            count_tools(definitions, model=self.model).tokens - metadata,
        )
        context.add("question, calls and answers", self.tokens(QUESTION))
        bodies = {skill.name: skill.body for skill in report.skills}
        for number, name in enumerate(chosen):
            self.calling(context, refused=number % 3 == 0)
            context.add("bodies", bodies[name])
        context.request()
        return context.to_dict()

    def eager(self, report: TokenReport, chosen: list[str]) -> dict[str, Any]:
        """Every body is in the system prompt, under its name and description."""
        context = Context()
        context.add("names and descriptions", report.total("metadata"))
        context.add("bodies", report.total("body"))
        context.add("frame, tools and notices", self.definitions(None))
        context.add("question, calls and answers", self.tokens(QUESTION))
        for number, _ in enumerate(chosen):
            self.calling(context, refused=number % 3 == 0)
        context.request()
        return context.to_dict()

    def calling(self, context: Context, *, refused: bool) -> None:
        """Call a skill once, after a refused attempt if *refused*: the same under every
        strategy.
        """
        runtime = digest_runtime(None)
        for arguments in (MALFORMED, CORRECTED) if refused else (CORRECTED,):
            context.request()
            answer = runtime.call_sync("digest", arguments).to_json()
            tier = (
                "errors and retries"
                if arguments is MALFORMED
                else "question, calls and answers"
            )
            context.add(
                tier,
                self.call("call_skill", {"name": "digest", "arguments": arguments})
                + self.tokens(answer),
            )

    def searching(self, toolkit: SkillToolkit, name: str) -> int:
        """The tokens of one search for a skill that the catalog does not list, and of
        its answer.
        """
        search = next(
            tool for tool in toolkit.get_tools() if tool.name == "search_skills"
        )
        query = {"query": name.replace("-", " ")}
        return self.call("search_skills", query) + self.tokens(
            str(search.invoke(query))
        )

    def call(self, tool: str, arguments: dict[str, Any]) -> int:
        """The tokens of a call and of the frame around it and its answer, as the OpenAI
        Cookbook frames messages.
        """
        roles = self.tokens("assistant") + self.tokens("tool")
        priming, two_messages, call_id = 3, 2 * 3, 3
        return (
            self.tokens(json.dumps(arguments))
            + self.tokens(tool)
            + roles
            + priming
            + two_messages
            + call_id
        )

    def definitions(self, toolkit: SkillToolkit | None) -> int:
        """The tokens of the toolkit's tools; without one, of the one tool that any
        strategy needs to call a skill.
        """
        from langchain_core.utils.function_calling import convert_to_openai_tool

        tools = (
            toolkit or SkillToolkit(digest_runtime(None), style="generic")
        ).get_tools()
        sent = [convert_to_openai_tool(tool) for tool in tools]
        if toolkit is None:
            sent = [tool for tool in sent if tool["function"]["name"] == "call_skill"]
        return count_tools(sent, model=self.model).tokens

    def growth(self, report: TokenReport, folder: Path) -> Iterator[dict[str, Any]]:
        """Render catalogs of 10 to 10,000 skills: the corpus, thinned evenly or
        repeated under further names.
        """
        skills = sorted(report.skills, key=lambda skill: skill.name)
        for size in SIZES:
            root = folder / str(size)
            picked = [
                skills[int(number * len(skills) / size) % len(skills)]
                for number in range(size)
            ]
            if size > len(skills):
                picked = [skills[number % len(skills)] for number in range(size)]
            for number, skill in enumerate(picked):
                stage(
                    root,
                    self.catalog,
                    skill.name,
                    number // len(skills) if size > len(skills) else 0,
                )
            catalog = discover(root)
            metadata = sum(
                self.tokens(meta.name) + self.tokens(meta.description)
                for meta in catalog.values()
            )
            bodies = sum(skill.body for skill in picked)
            tools = [
                {
                    "name": meta.name,
                    "description": meta.description,
                    "parameters": DIGEST["input"],
                }
                for meta in catalog.values()
            ]
            yield {
                "skills": len(catalog),
                "metadata": metadata,
                "compact": self.tokens(catalog.to_prompt("compact")),
                "reference": self.tokens(catalog.to_prompt("reference")),
                "budgeted": self.budgeted(catalog),
                "tool_per_skill": count_tools(tools, model=self.model).tokens,
                "eager": metadata + bodies,
            }

    def budgeted(self, catalog: SkillCatalog) -> int | None:
        render = getattr(catalog, "render", None)
        if render is None:
            return None
        rendered = render(
            budget_tokens=CATALOG_BUDGET, style="compact", count=self.tokens
        )
        return self.tokens(rendered.text if hasattr(rendered, "text") else rendered[0])

    def errors(self, path: Path) -> dict[str, Any]:
        """Cost the repairable calls of *path* with and without repair: the error, and
        the repeated call.
        """
        totals = {
            "calls": 0,
            "repaired": 0,
            "note": 0,
            "error": 0,
            "retry": 0,
            "error_left": 0,
            "retry_left": 0,
            "wrong": 0,
        }
        with path.open(encoding="utf-8") as lines:
            for case in map(json.loads, lines):
                if case["expect"] != "ok" or case["category"].startswith("valid"):
                    continue
                contract = Contract.from_dict(
                    {"input": case["schema"]}, name=case["function"]
                )
                refusal = self.refusal(contract, case["raw"], "strict")
                if refusal is None:
                    continue
                retry = self.call(case["function"], case["value"])
                totals["calls"] += 1
                totals["error"] += refusal
                totals["retry"] += retry
                left = self.refusal(contract, case["raw"], "safe")
                if left is None:
                    accepted = contract.accept(
                        case["raw"], policy="safe", fill_defaults=False
                    )
                    repairs = accepted.repairs
                    totals["wrong"] += accepted.arguments != case["value"]
                    repairs = [
                        {
                            "path": one.path,
                            "rule": one.rule,
                            "before": one.before,
                            "after": one.after,
                        }
                        for one in repairs
                    ]
                    totals["repaired"] += 1
                    totals["note"] += self.tokens(
                        json.dumps(
                            {"repairs": repairs}, ensure_ascii=False, default=str
                        )
                    )
                else:
                    totals["error_left"] += left
                    totals["retry_left"] += retry
        return totals

    def refusal(self, contract: Contract, raw: str, policy: str) -> int | None:
        try:
            contract.accept(raw, policy=policy)
        except SkillInputError as error:
            return self.tokens(SkillResponse.failed(*error.to_errors()).to_json())
        return None


def digest_runtime(catalog: SkillCatalog | None) -> SkillRuntime:
    """Return a runtime in which ``digest`` is a function, and an accepted call of it
    answers the same each time.
    """
    runtime = SkillRuntime(catalog)

    @runtime.implements("digest", contract=Contract.from_dict(DIGEST, name="digest"))
    def digest(arguments: dict[str, Any]) -> dict[str, Any]:
        return RESULT

    return runtime


def stage(root: Path, catalog: SkillCatalog, name: str, copy: int) -> None:
    """Write the skill *name* under *root* with its own description, as a further copy
    under a further name.
    """
    meta = catalog[name]
    staged = f"{name[:58]}-{copy}" if copy else name
    folder = root / staged
    folder.mkdir(parents=True, exist_ok=True)
    text = (
        "---\n"
        f"name: {json.dumps(staged)}\n"
        f"description: {json.dumps(meta.description)}\n"
        "---\n"
        "See above.\n"
    )
    (folder / "SKILL.md").write_text(text, encoding="utf-8")


def targets(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what was asked for next to what was measured."""
    compact = next(row for row in result["styles"] if row["name"] == "compact")
    added = max(one["added_share"] for one in result["conversations"])
    rows = [
        (
            "compact catalog, above name and description",
            "at most 5 tokens a skill",
            compact["above_per_skill"],
            5.0,
            "tokens a skill",
        ),
        (
            "added over catalog and activated bodies, all requests",
            "at most 5 %",
            round(added * 100, 2),
            5.0,
            "%",
        ),
        (
            "a repeated activation",
            "at most 25 tokens",
            max(one["repeat"] for one in result["conversations"]),
            25,
            "tokens",
        ),
    ]
    return [
        {
            "name": name,
            "target": target,
            "measured": measured,
            "unit": unit,
            "met": measured <= limit,
        }
        for name, target, measured, limit, unit in rows
    ]


def say(text: str) -> None:
    print(text, file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument(
        "--calls",
        type=Path,
        help="recorded calls with schema, raw text and expected value, as JSON lines",
    )
    parser.add_argument("--model", default="gpt-4o")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--html", type=Path)
    parser.add_argument("--png", type=Path)
    options = parser.parse_args()
    os.environ.setdefault(
        "SKILLRUNTIME_CACHE", "off"
    )  # temporary directories are not worth an index
    with tempfile.TemporaryDirectory() as folder:
        catalog = discover(*skill_roots(options.paths, Path(folder))).for_model()
        result = Bench(catalog, options.model, options.calls).run()
    for row in result["targets"]:
        verdict = "met" if row["met"] else "NOT MET"
        print(
            f"{row['name']}: {row['measured']} {row['unit']} (target: "
            f"{row['target']}): {verdict}"
        )
    if options.json:
        options.json.write_text(
            json.dumps(result, ensure_ascii=False, indent=2) + "\n", encoding="utf-8"
        )
    if options.html:
        from token_budget_page import page

        options.html.write_text(page(result), encoding="utf-8")
    if options.png:
        from token_budget_plots import plots

        plots(result, options.png)


if __name__ == "__main__":
    main()
