"""Keep the ids of the cases: ``python -m repair_benchmark.ids`` adds those that are new to
``data/ids.tsv``.

A line has an id and the digest of the schema and payload that it means, for ever. The
answer of a case may be corrected, in a new version of the data. A case that is taken
out keeps its line, with ``withdrawn`` in a third column, so that its id is not used
again.
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

from repair_benchmark.cases import DATA, cases

IDS = DATA / "ids.tsv"


def digest(case: dict[str, Any]) -> str:
    """Return the digest of the schema and the payload of *case*."""
    asked = json.dumps([case["schema"], case["payload"]], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def recorded() -> dict[str, str]:
    """Return the digest of each id that is recorded, withdrawn ones included."""
    lines = IDS.read_text(encoding="utf-8").split("\n") if IDS.exists() else []
    found = {}
    for line in lines:
        if line:
            id_, digest_, *_ = line.split("\t")
            found[id_] = digest_
    return found


def record() -> None:
    """Add the ids that are not recorded yet.

    Raises:
        SystemExit: a recorded id has another schema or payload.
    """
    known = recorded()
    new = []
    for case in cases():
        found = digest(case)
        if case["id"] not in known:
            new.append(f"{case['id']}\t{found}\n")
        elif known[case["id"]] != found:
            sys.exit(f"{case['id']} means another case: give the new one a new id")
    with IDS.open("a", encoding="utf-8") as file:
        file.write("".join(new))


if __name__ == "__main__":
    record()
