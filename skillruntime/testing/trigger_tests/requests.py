"""Read the requests that come with skills, each with the skill that it is for. These
files are read alike: ``evals.json`` and ``evals/evals.json`` (a list with ``question``
and ``expected_skill``, or ``evals`` with ``prompt``), ``evals/trigger_eval.json`` (a
list with ``query`` and ``should_trigger``), and ``tests/triggers.yaml`` (``request``
and ``skill``), all of them below one skill.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skillruntime.catalog.frontmatter.yaml_reader import YamlFault, load_yaml
from skillruntime.errors import InvalidSkillError

if TYPE_CHECKING:
    from skillruntime.catalog.catalog import SkillCatalog

__all__ = ["Request", "read_requests"]

FILES = (
    "evals.json",
    "evals/evals.json",
    "evals/trigger_eval.json",
    "evals/trigger_evals.json",
    "trigger_eval.json",
    "tests/triggers.yaml",
)
_TEXT_KEYS = ("request", "query", "question", "prompt", "input")
_SKILL_KEYS = ("skill", "expected_skill", "skill_name")
_LIST_KEYS = ("evals", "cases", "tests", "queries", "requests")
_MOST_BYTES = 4 * 1024**2
_LONGEST = 4_000


@dataclass(frozen=True, slots=True)
class Request:
    """A request, the skill that it is for (``None`` for none), and the skill that must
    not be chosen for it, if the file only says that.
    """

    text: str
    skill: str | None
    not_skill: str | None = None
    path: str = ""


def read_requests(catalog: SkillCatalog) -> list[Request]:
    """Return the requests in all skills of *catalog*, each text once for a skill.

    Raises:
        InvalidSkillError: a file cannot be read, or has none of these forms.
    """
    found: dict[tuple[str, str | None], Request] = {}
    for name, metadata in catalog.items():
        for file in FILES:
            path = metadata.directory / file
            if path.is_symlink() or path.parent.is_symlink() or not path.is_file():
                continue
            for request in _requests(_document(path), name, str(path)):
                found.setdefault((request.text, request.skill), request)
    return list(found.values())


def _document(path: Path) -> Any:
    with path.open("rb") as file:
        data = file.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise InvalidSkillError(f"{path} is longer than {_MOST_BYTES:,} bytes")
    try:
        # JSON is YAML (YAML 1.2, 1.3), but for tabs, which json reads.
        if path.suffix == ".json":
            import json

            return json.loads(data)
        return load_yaml(data.decode())
    except (YamlFault, ValueError, RecursionError) as error:
        raise InvalidSkillError(f"{path} cannot be read: {error}") from None


def _requests(document: Any, skill: str, path: str) -> Iterator[Request]:
    rows = document
    if isinstance(document, dict):
        lists = [document[key] for key in _LIST_KEYS if key in document]
        rows = next(iter(lists), [])
    if not isinstance(rows, list):
        raise InvalidSkillError(f"{path} is not a list of requests")
    for row in rows:
        if isinstance(row, dict):
            text = _first(row, _TEXT_KEYS)
            if isinstance(text, str) and text.strip():
                yield _request(row, text.strip()[:_LONGEST], skill, path)


def _request(row: dict[str, Any], text: str, skill: str, path: str) -> Request:
    if row.get("should_trigger") is False:
        return Request(text, None, skill, path)
    for key in _SKILL_KEYS:
        if key in row:
            named = row[key]
            if isinstance(named, str) and named:
                return Request(text, named, None, path)
            return Request(text, None, skill, path)
    return Request(text, skill, None, path)


def _first(row: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((row[key] for key in keys if key in row), None)
