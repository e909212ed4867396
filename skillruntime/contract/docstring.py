"""What a function's docstring says of its parameters, in Google's, NumPy's or Sphinx's form."""

from __future__ import annotations

import re

__all__ = ["documented"]


def documented(text: str) -> tuple[str, dict[str, str]]:
    """Return the first paragraph of a docstring, and what it says of each parameter.

    >>> documented("Search the notes.\\n\\nArgs:\\n    query: Words to look for.\\n")
    ('Search the notes.', {'query': 'Words to look for.'})
    """
    summary = " ".join(re.split(r"\n\s*\n", text.strip())[0].split())
    described = {match[1]: " ".join(match[2].split()) for match in _SPHINX.finditer(text)}
    if section := re.search(
        r"^(?:Args|Arguments|Parameters)(?::|\n---)[^\n]*+\n((?:[ \t]+\S.*\n?|\w.*\n?|\n)+)", text, re.MULTILINE
    ):
        # Google's style indents the section, NumPy's underlines its heading with dashes.
        pattern = _NUMPY if "---" in section[0] else _GOOGLE
        described |= {match[1]: " ".join(match[2].split()) for match in pattern.finditer(section[1])}
    return summary, described


_SPHINX = re.compile(r"^:param (?:[\w\[\]., |]+ )?(\w+):\s*(.+?)(?=\n:|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
_GOOGLE = re.compile(
    r"^[ \t]{2,8}\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+?)"
    r"(?=\n[ \t]{2,8}\*{0,2}\w+\s*(?:\([^)]*\))?:|\n\s*\n|\n\w|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NUMPY = re.compile(r"^(\w+)(?:\s*:[^\n]*)?\n[ \t]+(.+?)(?=\n\w|\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
