"""Compile the report of ``doctor``, without click and rich, because this command
reports that they are missing.
"""

from __future__ import annotations

import platform
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime._version import __version__
from skillruntime.cli.inputs.places import PLACES, rooted, usual_places
from skillruntime.cli.terminal.streams import Output
from skillruntime.cli.terminal.text import to_json, without_controls, writable
from skillruntime.errors import SkillRuntimeError
from skillruntime.extras import installed_extras

if TYPE_CHECKING:
    from collections.abc import Iterator

    from skillruntime.catalog import SkillCatalog

__all__ = ["answer_plainly", "report_lines", "report_of"]


def answer_plainly(words: list[str]) -> bool:
    """Print the report of the usual places and return True; return False if *words*
    have options, or if rich will draw the report on a terminal.
    """
    as_json = words == ["--json"]
    if words and not as_json:
        return False
    output = Output()
    is_drawn = sys.stdout.isatty() and not as_json
    if is_drawn and find_spec("rich") and find_spec("click"):
        return False
    from skillruntime.catalog import discover

    report = report_of(discover(rooted(usual_places(), trust=False)))
    if as_json:
        text = to_json(report)
    else:
        text = writable(without_controls("\n".join(report_lines(report))))
    try:
        print(text)
    finally:
        output.exit_unless_written()
    return True


def report_of(catalog: SkillCatalog) -> dict[str, Any]:
    """Return the installed packages, the working sandboxes, the places of the skills in
    *catalog*, and what these lack.
    """
    import anyio

    from skillruntime.adapters.tools.conversation_tools import visible_callables
    from skillruntime.adapters.tools.definitions import choose_definitions
    from skillruntime.runtime import SkillRuntime, sandbox_report

    runtime = SkillRuntime(catalog)
    unavailable = {}
    withheld = {}
    without_network = []
    for name in runtime.callable_names():
        try:
            missing = [item.to_dict() for item in runtime.missing(name)]
            if variables := runtime.withheld(name):
                withheld[name] = list(variables)
            if runtime.lacks_network(name):
                without_network.append(name)
        except SkillRuntimeError as error:  # the others are still checked
            message = str(error).removesuffix(".")
            action = error.suggested_action or "See skillruntime validate"
            missing = [{"kind": "skill", "message": message, "action": action}]
        if missing:
            unavailable[name] = missing
    definitions = choose_definitions(runtime, visible_callables(runtime))
    roots = [{"path": root.path, "trusted": root.trusted} for root in catalog.roots]
    return {
        "version": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "extras": installed_extras(),
        "sandboxes": anyio.run(sandbox_report),
        "workspace": str(Path.cwd()),
        "roots": roots,
        "skills": len(catalog),
        "unavailable": unavailable,
        "withheld": withheld,
        "definition_tokens": runtime.definition_tokens,
        "untrusted_definition_tokens": runtime.untrusted_definition_tokens,
        "called_by_name": list(definitions.by_name),
        "without_network": without_network,
    }


def report_lines(report: dict[str, Any]) -> list[str]:
    """Return *report* in lines: headings begin at the margin, their contents are
    indented.
    """
    first = (
        f"skillruntime {report['version']}, Python {report['python']}, "
        f"{report['platform']}"
    )
    return [first, *_on_machine(report), *_on_skills(report)]


def _on_machine(report: dict[str, Any]) -> Iterator[str]:
    yield from ("", "Extras")
    for extra, is_installed in report["extras"].items():
        how = "installed"
        if not is_installed:
            how = f"not installed: pip install 'skillruntime[{extra}]'"
        yield f"  {extra}: {how}"
    yield from ("", "Sandboxes for the scripts of untrusted skills")
    for level, reason in report["sandboxes"].items():
        yield f"  {level}: {reason or 'works'}"


def _on_skills(report: dict[str, Any]) -> Iterator[str]:
    yield from ("", f"Skills: {report['skills']}, called in {report['workspace']}")
    for root in report["roots"]:
        trust = "trusted" if root["trusted"] else "not trusted"
        yield f"  {root['path']} ({trust})"
    if not report["roots"]:
        yield f"  looked in {', '.join(PLACES)}"
    if report["unavailable"]:
        yield from ("", "Not ready to run")
    for name, missing in report["unavailable"].items():
        for item in missing:
            yield f"  {name}: {item['message']}. {item['action']}"
    if report["withheld"]:
        yield ""
        yield (
            "Run without variables that are set here, unless the host grants them: "
            "SkillRuntime(grants={NAME: Grants(environment=(...))})"
        )
    for name, variables in report["withheld"].items():
        yield f"  {name}: {', '.join(variables)}"
    if report["called_by_name"]:
        yield ""
        yield (
            "Called by name with call_skill: the definitions of a request have at most "
            f"{report['definition_tokens']:,} tokens, and those of untrusted skills "
            f"{report['untrusted_definition_tokens']:,}; "
            "SkillRuntime(definition_tokens=...) sets it"
        )
    for name in report["called_by_name"]:
        yield f"  {name}"
    if report["without_network"]:
        yield ""
        yield (
            "Open connections, and run without network unless the host grants it: "
            "SkillRuntime(grants={NAME: Grants(network=True)})"
        )
    for name in report["without_network"]:
        yield f"  {name}"
