"""How the documentation becomes a site: ``nox -s docs`` builds it, with warnings as errors.

The pages are the Markdown files beside this one. The Python reference is made from the docstrings of the public names,
which each package lists in its `__init__.pyi`.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from sphinx.ext.napoleon.docstring import GoogleDocstring

from skillruntime import __version__

# autodoc imports modules with TYPE_CHECKING set, under which the pydantic models of these two packages cannot be built.
for module in ("agents", "mcp"):
    import_module(module)

project = "skillruntime"
author = "the skillruntime authors"
release = __version__
html_title = f"skillruntime {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
exclude_patterns = ["_build"]

# Links to headings of another page (`repairs.md#policies`) are checked as links to pages are.
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence"]

default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "groupwise"
autodoc_preserve_defaults = True
# What pydantic adds to a tool of LangChain is not for those who call it.
autodoc_default_options = {"exclude-members": "model_post_init, model_config"}
napoleon_numpy_docstring = False
viewcode_follow_imported_members = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
html_show_copyright = False


def _readable_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, result: Any
) -> Any:
    """Write defaults as Python: with ``<factory>`` in it Sphinx cannot parse a signature, and prints it as it is."""
    if signature is not None:
        signature = re.sub(r"<class '([\w.]+)'>", r"\1", signature).replace("<factory>", "...")
    return signature, result


def _attribute_text(self: GoogleDocstring) -> list[str]:
    """Return an attribute's docstring as it is; Napoleon reads what precedes its first colon as the text, and the rest
    as a type."""
    return self._consume_to_end()


GoogleDocstring._parse_attribute_docstring = _attribute_text  # type: ignore[method-assign]


def setup(app: Any) -> None:
    app.connect("autodoc-process-signature", _readable_signature)
