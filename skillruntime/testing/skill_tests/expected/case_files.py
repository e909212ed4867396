"""Read and write the cases that an author writes or records: ``tests/cases.yaml`` of a
skill.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, load_yaml
from skillruntime.errors import InvalidSkillError
from skillruntime.testing.skill_tests.expected.answers import ANY

__all__ = ["CASES", "OwnCase", "add_cases", "cases_text", "read_cases"]

CASES = "tests/cases.yaml"
_TEXTS = ("call", "version", "error", "message", "stderr")
_KNOWN = {*_TEXTS, "arguments", "data", "files", "exact"}
_MOST_BYTES = 1024**2


@dataclass(frozen=True, slots=True)
class OwnCase:
    """One case: a call, and the part of its result, or the code of its error, that is
    expected. ``message`` is the text of the error, ``stderr`` what the script writes
    there, and ``files`` are the files that the call must write, with their digests.

    In texts, `ANY` stands for what varies. With ``exact``, the result has no further
    members, the call changes no further files, and it finds only the files that it
    names.
    """

    arguments: dict[str, Any]
    call: str | None = None
    version: str | None = None
    data: Any = None
    has_data: bool = False
    error: str | None = None
    message: str | None = None
    stderr: str | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    exact: bool = False

    def is_for(self, name: str, number: int) -> bool:
        """Return whether the case is for the callable *name*, one of *number*."""
        if self.call is None:
            return number == 1
        return self.call == name or name.endswith(f"/{self.call}")

    def to_dict(self) -> dict[str, Any]:
        """Return the case in the form of ``tests/cases.yaml``."""
        document: dict[str, Any] = {}
        if self.call is not None:
            document["call"] = self.call
        document["arguments"] = self.arguments
        if self.has_data:
            document["data"] = self.data
        for key in ("version", "error", "message", "stderr"):
            text = getattr(self, key)
            if text is not None:
                document[key] = text
        if self.files:
            document["files"] = {**self.files}
        if self.exact:
            document["exact"] = True
        return document


def read_cases(skill_directory: Path) -> list[OwnCase]:
    """Return the cases of a skill; none if it has no ``tests/cases.yaml``.

    Raises:
        InvalidSkillError: the file is not a list of cases.
    """
    path = skill_directory / CASES
    if path.parent.is_symlink() or path.is_symlink() or not path.is_file():
        return []
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidSkillError(f"{path} is longer than {_MOST_BYTES:,} bytes")
    try:
        document = load_yaml(data.decode())
    except (YamlFault, UnicodeDecodeError) as error:
        raise InvalidSkillError(f"{path} cannot be read: {error}") from None
    if document is None:
        return []
    if not isinstance(document, list):
        raise InvalidSkillError(f"{path} is not a list of cases")
    return [_case(item, f"{path}, case {n}") for n, item in enumerate(document, 1)]


def _case(item: Any, where: str) -> OwnCase:
    if not isinstance(item, Mapping) or not isinstance(item.get("arguments"), dict):
        raise InvalidSkillError(f"{where} is not an object with arguments")
    unknown = sorted(map(str, item.keys() - _KNOWN))
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise InvalidSkillError(f"{where} has {unknown[0]!r}; its keys are {known}")
    for key in _TEXTS:
        if not isinstance(item.get(key, ""), str):
            raise InvalidSkillError(f"{where}: {key} is not a string")
    if not isinstance(item.get("exact", False), bool):
        raise InvalidSkillError(f"{where}: exact is not true or false")
    return OwnCase(
        dict(item["arguments"]),
        item.get("call"),
        item.get("version"),
        data=item.get("data"),
        has_data="data" in item,
        error=item.get("error"),
        message=item.get("message"),
        stderr=item.get("stderr"),
        files=_files(item.get("files", []), where),
        exact=item.get("exact", False),
    )


def _files(listed: Any, where: str) -> dict[str, str]:
    """Return the digest of each file that a case lists, `ANY` if it has none."""
    if isinstance(listed, list):
        return {str(path): ANY for path in listed}
    if isinstance(listed, dict):
        return {str(path): str(digest) for path, digest in listed.items()}
    raise InvalidSkillError(f"{where}: files is not a list or an object")


def add_cases(
    skill_directory: Path, cases: Sequence[OwnCase], files: Mapping[str, bytes]
) -> int:
    """Append the new ones of *cases* to ``tests/cases.yaml``, and add the *files* that
    they name below ``tests/``; return how many cases were added.
    """
    known = [(case.call, case.arguments) for case in read_cases(skill_directory)]
    new = [case for case in cases if (case.call, case.arguments) not in known]
    if not new:
        return 0
    path = skill_directory / CASES
    try:
        path.parent.mkdir(exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(cases_text(new))
        for name, data in files.items():
            target = path.parent / name
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(data)
    except OSError as error:
        raise InvalidSkillError(
            f"{error.filename} cannot be written: {error.strerror}"
        ) from None
    return len(new)


def cases_text(cases: Sequence[OwnCase]) -> str:
    """Return *cases* as the text of a ``cases.yaml``: YAML whose values are JSON."""
    lines = []
    for case in cases:
        mark = "-"
        for key, value in case.to_dict().items():
            lines.append(f"{mark} {key}: {json.dumps(value, ensure_ascii=False)}")
            mark = " "
    return "\n".join(lines) + "\n"
