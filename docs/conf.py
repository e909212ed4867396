"""How the documentation becomes a site: ``nox -s docs`` builds it, with warnings as errors.

The pages are the Markdown files beside this one. The Python reference is made from the docstrings of the public names,
which each package lists in its `__init__.pyi`.
"""

from __future__ import annotations

from importlib import import_module

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
napoleon_numpy_docstring = False
viewcode_follow_imported_members = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_static_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
