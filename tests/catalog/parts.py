"""Inner names of the catalog that more than the test of their module needs: imported once,
here.
"""

from __future__ import annotations

from skillruntime.catalog.checks.autofix import Fixed, fix
from skillruntime.catalog.checks.lint import is_valid, lint
from skillruntime.catalog.checks.lockfile import check_lock
from skillruntime.catalog.contracts.derived_contracts import derive_scripts
from skillruntime.catalog.discovery.skill_file import summary_of
from skillruntime.catalog.discovery.summary import summarize
from skillruntime.catalog.frontmatter.frontmatter import cut, read_frontmatter
from skillruntime.catalog.frontmatter.simple_frontmatter import scan
from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, load_yaml, read_yaml
from skillruntime.catalog.rendering import STYLES

__all__ = [
    "STYLES",
    "Fixed",
    "YamlFault",
    "check_lock",
    "cut",
    "derive_scripts",
    "fix",
    "is_valid",
    "lint",
    "load_yaml",
    "read_frontmatter",
    "read_yaml",
    "scan",
    "summarize",
    "summary_of",
]
