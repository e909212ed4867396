"""``skillruntime doctor``: what is installed, what confines scripts, where skills are
found, and what they lack.
"""

from __future__ import annotations

import platform
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from skillruntime import __version__
from skillruntime.cli.inputs.roots import PLACES, catalog_options, open_catalog
from skillruntime.cli.terminal.output import json_option, print_result
from skillruntime.extras import installed_extras

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]


@click.command("doctor")
@catalog_options
@json_option
def command(directories: tuple[str, ...], trust: bool, as_json: bool) -> None:
    """Say what is installed, which sandboxes work here, where skills are found, and
    what each of them lacks.
    """
    from skillruntime.runtime import SkillRuntime, sandbox_report

    catalog = open_catalog(directories, trust=trust)
    runtime = SkillRuntime(catalog)
    unavailable = {}
    withheld = {}
    for name in runtime.callable_names():
        missing = [item.to_dict() for item in runtime.missing(name)]
        if missing:
            unavailable[name] = missing
        if variables := runtime.withheld(name):
            withheld[name] = list(variables)
    roots = [{"path": root.path, "trusted": root.trusted} for root in catalog.roots]
    report = {
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
    }
    print_result(report, lambda console: _draw(console, report), as_json=as_json)


def _draw(console: Console, report: dict[str, Any]) -> None:
    lines = [
        f"skillruntime {report['version']}, Python {report['python']}, "
        f"{report['platform']}",
        "",
        "Extras",
    ]
    for extra, is_installed in report["extras"].items():
        how = "installed"
        if not is_installed:
            how = f"not installed: pip install 'skillruntime[{extra}]'"
        lines.append(f"  {extra}: {how}")
    lines += ["", "Sandboxes for the scripts of untrusted skills"]
    lines += [
        f"  {level}: {reason or 'works'}"
        for level, reason in report["sandboxes"].items()
    ]
    lines += ["", f"Skills: {report['skills']}, called in {report['workspace']}"]
    for root in report["roots"]:
        trust = "trusted" if root["trusted"] else "not trusted"
        lines.append(f"  {root['path']} ({trust})")
    if not report["roots"]:
        lines.append(f"  looked in {', '.join(PLACES)}")
    if report["unavailable"]:
        lines += ["", "Not ready to run"]
    for name, missing in report["unavailable"].items():
        lines += [f"  {name}: {item['message']}. {item['action']}" for item in missing]
    if report["withheld"]:
        lines += ["", "Run without variables that are set here, unless the host grants"]
        lines[-1] += " them: SkillRuntime(grants={NAME: Grants(environment=(...))})"
    for name, variables in report["withheld"].items():
        lines.append(f"  {name}: {', '.join(variables)}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
