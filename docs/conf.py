"""How the documentation becomes a site: ``nox -s docs`` builds it, with warnings as
errors.

The pages are the Markdown files beside this one. The Python reference is made from the
docstrings of the public names, which each package lists in its `__init__.pyi`.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.ext.napoleon.docstring import GoogleDocstring

from skillruntime import __version__

# autodoc imports modules with TYPE_CHECKING set, under which the pydantic models of
# these two packages cannot be built.
for module in ("agents", "mcp"):
    import_module(module)

# What a user meets first in each package; its other names follow by the alphabet.
FIRST = {
    "catalog": ("discover", "SkillCatalog", "SkillMetadata", "Skill"),
    "compatibility": ("compare", "Verdict", "Change", "suggest_migration"),
    "contract": (
        "Contract",
        "Accepted",
        "Repair",
        "SkillResponse",
        "repair",
        "Repairer",
        "Schema",
        "Policy",
    ),
    "derive": ("derive", "Derivation"),
    "remote": ("attach_remote_skills", "RemoteClient", "SkillDescriptor"),
    "runtime": (
        "SkillRuntime",
        "skill",
        "SkillSession",
        "CallContext",
        "Approval",
        "Grants",
    ),
    "server": (
        "serve_catalog",
        "SkillService",
        "create_app",
        "Server",
        "durable_executions",
    ),
    "tokens": ("count", "Count", "TokenLimits", "TokenLedger"),
}
for package, names in FIRST.items():
    documented = import_module(f"skillruntime.{package}")
    documented.__all__ = [*names, *sorted({*documented.__all__} - {*names})]

project = "skillruntime"
author = "the skillruntime authors"
release = __version__
html_title = f"skillruntime {release}"

extensions = [
    *(
        "myst_parser",
        "sphinx.ext.autodoc",
        "sphinx.ext.napoleon",
        "sphinx.ext.viewcode",
    ),
    *("sphinx_copybutton", "sphinx_design"),
]
exclude_patterns = ["_build"]

# Links to headings of another page (`repairs.md#policies`) are checked as links to
# pages are.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
# What pydantic adds to a tool of LangChain is not for those who call it.
autodoc_default_options = {"exclude-members": "model_post_init, model_config"}
napoleon_numpy_docstring = False
viewcode_follow_imported_members = True
python_maximum_signature_line_length = 88

# The button copies what a reader types, without prompts and without what is printed.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "furo"
html_logo = "images/logo.svg"
html_favicon = "images/logo.svg"
html_theme_options = {
    "source_repository": "https://github.com/skillruntime/skillruntime/",
    "source_branch": "main",
    "source_directory": "docs/",
    "footer_icons": [
        {
            "name": "GitHub",
            "url": "https://github.com/skillruntime/skillruntime",
            "html": "Repository",
            "class": "",
        }
    ],
}
html_static_path = ["_static"]
html_extra_path = ["contract.schema.json"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False


def _readable_signature(
    app: Any,
    what: str,
    name: str,
    obj: Any,
    options: Any,
    signature: str | None,
    result: Any,
) -> Any:
    """Write defaults as Python: with ``<factory>`` in it Sphinx cannot parse a
    signature, and prints it as it is.
    """
    if signature is not None:
        signature = re.sub(r"<class '([\w.]+)'>", r"\1", signature).replace(
            "<factory>", "..."
        )
        signature = re.sub(r"<function [^>]*>+|<lambda>", "...", signature)
    return signature, result


def _attribute_text(self: GoogleDocstring) -> list[str]:
    """Return an attribute's docstring as it is; Napoleon reads what precedes its first
    colon as the text, and the rest as a type.
    """
    return self._consume_to_end()


GoogleDocstring._parse_attribute_docstring = _attribute_text  # type: ignore[method-assign]


def _write_llms_txt(app: Any, error: Exception | None) -> None:
    """Write llms.txt (llmstxt.org): each page's address, title and first sentence, for
    models that read the site.
    """
    lines = [
        f"# {project}",
        "",
        "> Validate, repair and run the tool calls of Agent Skills.",
        "",
        "## Docs",
        "",
    ]
    for page in sorted(Path(app.srcdir).glob("*.md")):
        if page.stem == "changelog":
            continue
        title, _, text = page.read_text(encoding="utf-8").partition("\n")
        prose = re.sub(
            r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL
        ).splitlines()
        sentences = (
            line
            for line in prose
            if re.match(r"[A-Z`\[]", line) and not line.endswith(":")
        )
        lines.append(
            f"- [{title.removeprefix('# ')}]({page.stem}.html): {next(sentences, '')}"
        )
    if error is None and app.builder.name == "html":
        Path(app.outdir, "llms.txt").write_text(
            "\n".join(lines) + "\n", encoding="utf-8"
        )


def _without_last_blank(app: Any, page: str, source: list[str]) -> None:
    """Leave out the line that ends the output of an example, which doctest needs and no
    reader does.
    """
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def setup(app: Any) -> None:
    app.connect("source-read", _without_last_blank)
    app.connect("build-finished", _write_llms_txt)
    app.connect("autodoc-process-signature", _readable_signature)
