"""A usage line, as people write it, read as arguments: ``tool.py <input> [output] [--limit N] [--quiet]``."""

from __future__ import annotations

import re

from skillruntime.derive.command import Argument

__all__ = ["find_usages", "read_usage"]

_WORD = re.compile(r"\[[^\[\]]*\]|<[^<>]*>(?:\.\.\.)?|\S+")
_CALLED = re.compile(
    r"(?:\$\s*)?(?:uv run |python3? |bash |sh |node |\./)*"
    r"(?:%s|\$0|\$\(basename \$0\)|\{[^}]*\}|\S+\.(?:py|sh|js|mjs)|\S*/?\w[\w.-]*)(.*)"
)
_NAME = re.compile(r"[A-Za-z][\w -]*")


def find_usages(text: str) -> list[str]:
    """Return what follows the script's name in each usage line of *text*.

    >>> find_usages("Merge.\\n\\nUsage: python merge.py <a> <b>\\n")
    ['<a> <b>']
    """
    found: list[str] = []
    lines = text.splitlines()
    for index, line in enumerate(lines):
        match = re.search(r"(?i)\busage\s*:\s*(.*)", line)
        if not match:
            continue
        rest = match[1].strip()
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
