"""A usage line, as people write it, read as arguments: ``tool.py <input> [output] [--limit N] [--quiet]``."""

from __future__ import annotations

import re

from skillruntime.derive.command import Argument

__all__ = ["find_usages", "least_in_usage", "read_usage", "usage_text"]

_WORD = re.compile(r"\[[^\[\]]*\]|<[^<>]*>(?:\.\.\.)?|\S+")
_CALLED = re.compile(
    r"(?:\$\s*)?(?:uv run |python3? |bash |sh |node |\./)*"
    r"(?:%s|\$0|\$\(basename \$0\)|\{[^}]*\}|\S+\.(?:py|sh|js|mjs)|\S*/?\w[\w.-]*)(.*)"
)
_LINE_LIMIT = 2_000
"""Characters of a usage line that are read; the longest text that is kept has 600."""

_USAGE = re.compile(r"(?i)\busage\s*:\s*")
_OUTPUT = re.compile(r"\s*(?:>&2\s+)?(?:echo|printf|print|console\.\w+|sys\.exit|sys\.stderr\.write|die|usage)\b")
_COMMENT = re.compile(r"\s*(?:#|//|\*)")
_MARKUP = re.compile(
    r"""^[\s#*/]*(?:>&2\s+)?(?:(?:echo|printf)\s+(?:-e\s+)?|(?:print|console\.\w+|sys\.exit|sys\.stderr\.write)\()?"""
    r"""[rfb]*["'`]*|(?:\\n)?["'`]*\s*(?:,\s*file=sys\.stderr)?\)?;?\s*(?:1?>&2)?\s*(?:;?\s*exit\s*\d*\s*;?\s*\}?)?\s*$"""
)
_NAME = re.compile(r"[A-Za-z][\w -]*")


def find_usages(text: str) -> list[str]:
    """Return what follows the script's name in each usage line of *text*.

    >>> find_usages("Merge.\\n\\nUsage: python merge.py <a> <b>\\n")
    ['<a> <b>']
    """
    found: list[str] = []
    lines = text.splitlines() if _names_usage(text) else []
    for index, line in enumerate(lines):
        match = _USAGE.search(line) if _names_usage(line) else None
        if not match:
            continue
        rest = line[match.end() :].strip()
        # The usage may follow on the same line or on the next ones.
        if rest:
            candidates = [rest]
        else:
            candidates = []
            for following in lines[index + 1 : index + 8]:
                if not following.strip():
                    if candidates:
                        break
                    continue
                candidates.append(following.strip())
        for candidate in candidates:
            called = _CALLED.match(candidate)
            if called and re.search(r"\.(py|sh|js|mjs)\b|\$0|%s|\{", candidate):
                found.append(re.split(r"\s+#|\s{3,}", called[1].strip())[0].strip().rstrip("\\'\""))
    return list(dict.fromkeys(found))


def least_in_usage(source: str) -> int:
    """Return how many words every usage line of *source* demands before its first bracket.

    >>> least_in_usage('echo "Usage: $0 add <name> [days]"'), least_in_usage("# Usage: x.sh [name]"), least_in_usage("")
    (2, 0, 0)
    """
    counts: list[int] = []
    for usage in find_usages(source):
        count = 0
        for word in _WORD.findall(usage):
            plain = re.match(r"(?:<[^<>]+>(?:\.\.\.)?|[A-Za-z-][\w=.|-]*|\{[^{}]*\})(?=([\"'`]?)[\"'`);]*$)", word)
            count += plain is not None
            # A quote ends the text, a bracket what every call needs; what follows ``up|logs`` may be for one of them.
            if plain is None or plain[1] or "|" in word:
                break
        # ``Usage: x.sh name | --all``: fewer may do.
        if re.search(r"\s\|\s", usage):
            count = min(count, 1)
        counts.append(count)
    return min(counts, default=0)


def usage_text(source: str, limit: int = 600) -> str:
    """Return the usage text of *source*, a script in any language: the usage line and the lines that belong to it.

    >>> usage_text('echo "Usage: $0 <name> [days]" >&2\\necho "  name  who it is for"\\nexit 1\\n')
    'Usage: $0 <name> [days]; name who it is for'
    """
    lines = source.splitlines() if _names_usage(source) else []
    first = next((n for n, line in enumerate(lines) if _names_usage(line) and _USAGE.search(line)), None)
    if first is None:
        return ""
    found: list[str] = []
    kind = next((each for each in (_OUTPUT, _COMMENT) if each.match(lines[first])), None)
    # A usage with its options is seldom longer, and a longer one costs tokens.
    for line in lines[first : first + 14]:
        # A block of ``echo`` lines or comments ends at the first line that is not one; a docstring at a blank line.
        # The end of the expression takes the fourth power of a run of spaces, and a damaged line has thousands.
        plain = _MARKUP.sub("", " ".join(line[:_LINE_LIMIT].split())).strip()
        if line is lines[first]:  # ``const usage = `Usage: ...``
            plain = plain[max(plain.lower().find("usage"), 0) :]
        if found and (not plain or (kind is not None and kind.match(line) is None)):
            break
        found.append(" ".join(plain.split()))
        if re.search(r"(\"\"\"|'''|\*/)\s*\)?;?$", line) and line is not lines[first]:
            break
    text = "; ".join(each for each in found if each)
    return text if len(text) <= limit else text[: limit - 1].rsplit(" ", 1)[0] + "…"


def _names_usage(text: str) -> bool:
    """Whether *text* has the word: a search that is many times faster than an expression in any case."""
    return "usage" in text.lower()


def read_usage(usage: str) -> list[Argument] | None:
    """Return the arguments of one usage line; None where it is not plain.

    >>> [(each.name, each.flags, each.required) for each in read_usage("<input> [output] [--limit N]") or ()]
    [('input', (), True), ('output', (), False), ('limit', ('--limit',), False)]
    """
    arguments: list[Argument] = []
    words = _WORD.findall(usage)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        optional = word.startswith("[")
        inner = word[1:-1].strip() if optional else word
        if inner.lower() in ("options", "option", "flags", "..."):
            if inner == "..." and arguments:
                continue
            return None
        # Alternatives and code are a grammar of their own; a misread bracket would be a wrong contract.
        if re.search(r"[|{}()'\"$`;]", inner):
            return None
        if inner.startswith("-"):
            flag, _, value = re.sub(r"[=]", " ", inner, count=1).partition(" ")
            if not optional and not value and index < len(words) and re.match(r"<|[A-Z_]+$", words[index]):
                value, index = words[index], index + 1
            name = flag.lstrip("-").replace("-", "_")
            if not re.fullmatch(r"[A-Za-z]\w*", name):
                return None
            arguments.append(Argument(name, (flag,), "value" if value else "nothing", required=not optional))
            continue
        many = inner.endswith("...")
        plain = inner.removesuffix("...").strip().strip("<>[]").strip()
        if " " in plain and not word.startswith(("<", "[")):
            return None
        name = re.sub(r"[^A-Za-z0-9]+", "_", plain).strip("_").lower()
        if not _NAME.fullmatch(plain.replace(".", "_").replace("/", "_")) or not name:
            return None
        arguments.append(
            Argument(name, (), "values" if many else "value", required=not optional, least=int(not optional))
        )
    names = [each.name for each in arguments]
    return arguments if len(set(names)) == len(names) else None
