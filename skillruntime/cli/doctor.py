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
        missing = [each.to_dict() for each in runtime.missing(name)]
        if missing:
            unavailable[name] = missing
        if variables := runtime.withheld(name):
            withheld[name] = list(variables)
    roots = [{"path": root.path, "trusted": root.trusted} for root in catalog.roots]
    found = {
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
    print_result(found, lambda console: _draw(console, found), as_json=as_json)


def _draw(console: Console, found: dict[str, Any]) -> None:
    lines = [
        f"skillruntime {found['version']}, Python {found['python']}, "
        f"{found['platform']}",
        "",
        "Extras",
    ]
    for extra, is_installed in found["extras"].items():
        how = "installed"
        if not is_installed:
            how = f"not installed: pip install 'skillruntime[{extra}]'"
        lines.append(f"  {extra}: {how}")
    lines += ["", "Sandboxes for the scripts of untrusted skills"]
    lines += [
        f"  {level}: {reason or 'works'}"
        for level, reason in found["sandboxes"].items()
    ]
    lines += ["", f"Skills: {found['skills']}, called in {found['workspace']}"]
    for root in found["roots"]:
        trust = "trusted" if root["trusted"] else "not trusted"
        lines.append(f"  {root['path']} ({trust})")
    if not found["roots"]:
        lines.append(f"  looked in {', '.join(PLACES)}")
    if found["unavailable"]:
        lines += ["", "Not ready to run"]
    for name, missing in found["unavailable"].items():
        lines += [f"  {name}: {each['message']}. {each['action']}" for each in missing]
    if found["withheld"]:
        lines += ["", "Run without variables that are set here, unless the host grants"]
        lines[-1] += " them: SkillRuntime(grants={NAME: Grants(environment=(...))})"
    for name, variables in found["withheld"].items():
        lines.append(f"  {name}: {', '.join(variables)}")
    console.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)
