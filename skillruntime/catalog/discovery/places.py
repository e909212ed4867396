"""Find the place of a skill, the qualifier that distinguishes it from another skill
with the same name: ``plugin:name``.

The place is stated by the skill's source: the name in a plugin's manifest, an installed
package, or the scope of its root. Otherwise it is a directory above the skill. It never
depends on the location of the root itself, so that a lockfile is valid on another
machine.
"""

from __future__ import annotations

import json
import os
import re
import unicodedata
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from skillruntime.catalog.discovery.root_snapshot import Entry
from skillruntime.catalog.file_opening import read_inside
from skillruntime.lazy_patterns import lazy_pattern

__all__ = ["is_translation", "qualified_names"]

MANIFESTS = (
    ".claude-plugin/plugin.json",
    ".codex-plugin/plugin.json",
    ".cursor-plugin/plugin.json",
    "plugin.json",
)
"""The manifests in which a plugin states its name, relative to its directory."""

MAX_MANIFEST = 256 * 1024
MAX_PLACE = 64
_MOST_ABOVE_ROOT = 2
"""The maximum number of directories, the root and those above it, that a place may
name: directories further up differ from machine to machine.
"""

# The languages into which documents are most often translated. A list, because
# `docs/ui` and `docs/api` look like languages too.
_LANGUAGES = frozenset(
    {
        "ar",
        "bg",
        "bn",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "en",
        "es",
        "et",
        "fa",
        "fi",
        "fil",
        "fr",
        "he",
        "hi",
        "hr",
        "hu",
        "id",
        "it",
        "ja",
        "ko",
        "lt",
        "lv",
        "ms",
        "nb",
        "nl",
        "no",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sr",
        "sv",
        "sw",
        "ta",
        "te",
        "th",
        "tr",
        "uk",
        "ur",
        "vi",
        "zh",
    }
)
_LANGUAGE = lazy_pattern(r"([a-z]{2,3})(?:[-_](?:[A-Za-z]{2}|[A-Z][a-z]{3}))?")


def is_translation(entry: Entry) -> bool:
    """Return whether the skill lies below ``docs/<language>/`` in its root."""
    if "/docs/" not in entry.file:
        return False
    parts = entry.file.removeprefix(entry.root.path).split("/")
    for above, language in pairwise(parts):
        if above == "docs":
            match = _LANGUAGE.fullmatch(language)
            if match is not None and match[1] in _LANGUAGES:
                return True
    return False


def qualified_names(
    entries: Sequence[Entry], reserved: Container[str]
) -> dict[str, Entry]:
    """Return *entries* by unique names ``PLACE:name`` that are not *reserved*; an entry
    without such a name is left out.

    Each entry has lost its plain name. If two entries would get the same name, both get
    a further directory in front.
    """
    sources = _Sources()
    places = dict(enumerate(_places(entry, sources) for entry in entries))
    names: dict[int, str] = {}
    longer = set(places)
    while longer:
        for position in longer:
            place = next(places[position], "")
            if place:
                names[position] = f"{place}:{entries[position].name}"
            else:
                del places[position]  # keep its last name
        longer = _not_unique(names, reserved) & set(places)
    named: dict[str, Entry] = {}
    for position, entry in enumerate(entries):
        name = names.get(position, "")
        if name and _is_free(name, reserved):
            named.setdefault(name, entry)
    return named


def _not_unique(names: Mapping[int, str], reserved: Container[str]) -> set[int]:
    """Return the positions of the *names* that occur more than once or are
    *reserved*.
    """
    by_name: dict[str, list[int]] = {}
    for position, name in names.items():
        by_name.setdefault(name, []).append(position)
    found: set[int] = set()
    for name, positions in by_name.items():
        if len(positions) > 1 or not _is_free(name, reserved):
            found.update(positions)
    return found


def _is_free(name: str, reserved: Container[str]) -> bool:
    # The tools of `pb:tdd` begin with `pb_tdd`, and another skill may have this name.
    return name not in reserved and name.replace(":", "_") not in reserved


class _Sources:
    """The directories at which the search for places ends, and the manifests that were
    found; shared by all skills.
    """

    def __init__(self) -> None:
        self.ends = {os.getcwd(): "project", os.path.expanduser("~"): "user"}
        """The directories at which the search for a place ends, with their names."""
        self._stated: dict[tuple[str, str], tuple[str, str]] = {}

    def stated(self, directory: str, last: str) -> tuple[str, str]:
        """Return the name in the nearest manifest at or above *directory*, up to
        *last*, and the directory of that manifest; two empty strings if there is no
        manifest.
        """
        key = (directory, last)
        if key not in self._stated:
            name = _manifest_name(directory)
            if name:
                self._stated[key] = (name, directory)
            elif len(directory) <= len(last):
                self._stated[key] = ("", "")
            else:
                self._stated[key] = self.stated(os.path.dirname(directory), last)
        return self._stated[key]


def _places(entry: Entry, sources: _Sources) -> Iterator[str]:
    """Yield the possible places of *entry*, the best first: the place that its source
    states, else a directory; then with one more directory in front, then with several.
    """
    own = entry.directory
    stated, directory = _stated(entry, own, sources)
    names = chain(
        [stated],
        _directories(entry, directory, sources.ends),
        _directories_below(entry, directory),
    )
    places = filter(None, map(_in_form, names))
    place = next(places, "")
    yield place
    others = [other for other in dict.fromkeys(places) if other != place]
    for other in others:
        yield f"{other}-{place}"
    for other in others:
        place = f"{other}-{place}"
        if len(place) > MAX_PLACE:
            return
        yield place


def _stated(entry: Entry, own: str, sources: _Sources) -> tuple[str, str]:
    """Return the place that the source of *entry* states (or an empty string), and the
    directory above which further names are found. *own* is the entry's directory.
    """
    root = entry.root
    # `import_skills` names the skill directories of an MCP server ``place:name``.
    place, _, name = os.path.basename(own).rpartition(":")
    if place and name == entry.name:
        return place, own
    if root.record:
        return root.scope, own
    last = root.path
    if os.path.basename(last) == "skills":  # a manifest is beside it
        last = os.path.dirname(last)
    stated, directory = sources.stated(own, last)
    if stated:
        return stated, directory
    return root.scope, own


def _directories(
    entry: Entry, directory: str, ends: Mapping[str, str]
) -> Iterator[str]:
    """Yield the names of the directories above *directory* that are the same on every
    machine.

    *ends* names the working directory ``project`` and the home directory ``user``;
    directories above them are not used.
    """
    root = entry.root.path
    above_root = 0
    while directory not in ends:
        directory = os.path.dirname(directory)
        name = ends.get(directory) or os.path.basename(directory)
        if not name:
            return
        if name == "skills" or name.startswith("."):
            continue
        if not directory.startswith(f"{root}/"):
            above_root += 1
            if above_root > _MOST_ABOVE_ROOT:
                return
        yield name


def _directories_below(entry: Entry, directory: str) -> Iterator[str]:
    """Yield the names that `_directories` leaves out: of the directories between the
    skill and *directory*, of directories whose name begins with a dot, and of the
    skill's own directory.
    """
    own = entry.directory
    path = own.removeprefix(entry.root.path).strip("/")
    between = own.removeprefix(directory).strip("/")
    hidden = [name for name in path.split("/") if name.startswith(".")]
    if os.path.basename(entry.root.path) == "skills":
        # One project can have both `.agents/skills` and `.claude/skills`.
        above = os.path.basename(os.path.dirname(entry.root.path))
        hidden = [name for name in [above] if name.startswith(".")] + hidden
    names = [*reversed(between.split("/")[:-1]), *hidden, os.path.basename(own)]
    for name in names:
        if name not in ("skills", entry.name):
            yield name


def _manifest_name(directory: str) -> str:
    """Return the name that the plugin's manifest in *directory* states, written like
    the name of a skill; an empty string if there is no name.
    """
    for path in MANIFESTS:
        try:
            # Most directories have no manifest, and `lstat` is the fastest test.
            os.lstat(f"{directory}/{path}")
            document = json.loads(read_inside(directory, path, MAX_MANIFEST))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(document, Mapping) and isinstance(document.get("name"), str):
            name = _in_form(document["name"])
            if name:
                return name
    return ""


@lru_cache(maxsize=1024)  # skills share parent directories
def _in_form(name: str) -> str:
    """Return *name* with only lower-case letters, digits and hyphens."""
    folded = unicodedata.normalize("NFKD", name[:200]).encode("ascii", "ignore")
    plain = re.sub(r"[^a-z0-9]++", "-", folded.decode().lower())
    return plain.strip("-")[:MAX_PLACE].rstrip("-")
