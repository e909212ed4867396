"""Which tools are derived for the scripts of published skills, and whether they take
the commands that the skills show.

    python benchmarks/derive_skills.py PATH ...
        the skills below each PATH, read only
    python benchmarks/derive_skills.py PATH --enums
        and every choice that is closed without a parser, to be judged by a reader
    python benchmarks/derive_skills.py PATH --refused
        and every shown command that a contract refuses

A parameter is named where it is not the list ``args`` of all further words, and typed
where it is named and not a plain text. A command is refused by a declaration where
argparse declares the command line, else by a guess: the last must not be.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from skillruntime.catalog import discover
from skillruntime.errors import SkillRuntimeError

SCRIPTS = ("*.py", "*.sh", "*.bash", "*.js", "*.mjs", "*.cjs")
DECLARED = ("argparse",)


@dataclass
class Tally:
    """What came of the skills."""

    counts: Counter[str] = field(default_factory=Counter)
    enums: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def add(self, directory: Path, contracts: Mapping[str, Any]) -> None:
        """Count the contracts of one skill with scripts."""
        self.counts["skills with scripts"] += 1
        self.counts["skills with a tool"] += bool(contracts)
        for name, contract in contracts.items():
            self._add_tool(f"{directory}: {name}", contract.to_dict())

    def _add_tool(self, where: str, document: Mapping[str, Any]) -> None:
        derived = document.get("derived", {})
        framework = str(derived.get("framework"))
        self.counts["tools"] += 1
        self.counts[f"tools of {framework}"] += 1
        self.counts["tools that say nothing"] += document["description"].startswith(
            "Runs "
        )
        for name, schema in parameters(document["input"]):
            is_named = name != "args"
            self.counts["parameters"] += 1
            self.counts["named"] += is_named
            self.counts["typed"] += is_named and is_typed(schema)
            if "enum" in schema:
                self.counts["enums"] += 1
                if framework not in DECLARED:
                    self.counts["enums without a parser"] += 1
                    self.enums.append(f"{where}: {name}: {schema['enum']}")
        taken = derived.get("tried", ())
        refused = derived.get("refused", ())
        self.counts["commands tried"] += len(taken) + len(refused)
        kind = "declaration" if framework in DECLARED else "guess"
        self.counts[f"commands refused by a {kind}"] += len(refused)
        self.refused += [f"{where}: {line}" for line in refused]


def parameters(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each parameter once, those of commands too."""
    seen: set[str] = set()
    for part in (schema, *schema.get("oneOf", ())):
        for name, described in part.get("properties", {}).items():
            if name not in seen:
                seen.add(name)
                yield name, described


def is_typed(schema: Mapping[str, Any]) -> bool:
    """Return whether the schema says more than that the value is a text."""
    if schema.get("type") != "string":
        return True
    return "enum" in schema or "format" in schema


def measure(paths: list[Path]) -> Tally:
    """Return what came of the skills below *paths*."""
    tally = Tally()
    for path in paths:
        catalog = discover(path)
        for name, metadata in catalog.items():
            directory = Path(metadata.path).parent
            scripts = directory / "scripts"
            usual = [
                file
                for pattern in SCRIPTS
                for file in [*directory.glob(pattern), *scripts.rglob(pattern)]
            ]
            if not usual:
                continue
            try:
                tally.add(directory, catalog.activate(name).contracts)
            except SkillRuntimeError as error:
                tally.counts["skills that cannot be read"] += 1
                print(f"! {directory}: {error}")
    return tally


def main() -> int:
    """Print the figures; the exit code is 1 where a guess refuses a shown command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="+", type=Path, metavar="path")
    parser.add_argument("--enums", action="store_true")
    parser.add_argument("--refused", action="store_true")
    options = parser.parse_args()
    tally = measure(options.paths)
    for name, number in sorted(tally.counts.items()):
        print(f"{number:8,} {name}")
    for part, whole in (
        ("skills with a tool", "skills with scripts"),
        ("named", "parameters"),
        ("typed", "parameters"),
    ):
        share = tally.counts[part] / max(tally.counts[whole], 1)
        print(f"{share:8.1%} {part} of {whole}")
    lines = [*(tally.enums if options.enums else ())]
    lines += tally.refused if options.refused else []
    for line in lines:
        print("!", line)
    return int(tally.counts["commands refused by a guess"] > 0)


if __name__ == "__main__":
    sys.exit(main())
