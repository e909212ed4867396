"""Skills with one fault each, to put beside a good one."""

from __future__ import annotations

import json
import os
import stat
from itertools import pairwise
from pathlib import Path

__all__ = ["write_bad_skills"]


def _head(name: str, *lines: str, description: str = "Does things.") -> bytes:
    stated = "".join(f"{line}\n" for line in lines)
    text = f"---\nname: {name}\ndescription: {description}\n{stated}---\nBody.\n"
    return text.encode()


def _bad_files() -> dict[str, dict[str, bytes]]:
    """Return the files of each bad skill."""
    nested = json.dumps({"input": {"type": "object"}}).encode()
    deep = b'{"input": ' + b'{"not": ' * 3_000 + b"true" + b"}" * 3_001
    heads = {
        "empty": b"",
        "no-frontmatter": b"Read this.\n",
        "unclosed": b"---\nname: unclosed\ndescription: Never ends.\n",
        "not-a-mapping": b"---\n- one\n- two\n---\n",
        "tag": b"---\nname: tag\ndescription: A tag.\nk: !!bool x\n---\n",
        "anchors": b"---\nname: anchors\ndescription: &a [*a, *a]\n---\n",
        "deep-yaml": b"---\nname: deep-yaml\ndescription: x\nk: "
        + b"[" * 5_000
        + b"\n---\n",
        "binary": bytes(range(256)) * 20,
        "nul": b"---\nname: nul\ndescription: A \0 in it.\n---\n",
        "utf-16": "---\nname: utf-16\ndescription: Wide.\n---\n".encode("utf-16"),
        "not-utf-8": b"---\nname: not-utf-8\ndescription: \xff\xfe\xfd\n---\n",
        "no-description": b"---\nname: no-description\n---\n",
        "null-description": b"---\nname: null-description\ndescription: null\n---\n",
        "long-description": _head("long-description", description="x" * 1_500),
        "long-compatibility": _head(
            "long-compatibility", f"compatibility: {'x' * 600}"
        ),
        "null-metadata": _head("null-metadata", "metadata: null"),
        "list-metadata": _head("list-metadata", "metadata: [a, b]"),
        "nested-metadata": _head("nested-metadata", "metadata:", "  a:", "    b: c"),
        "number-metadata": _head("number-metadata", "metadata:", "  version: 1.2"),
        "upper-case": _head("Upper-Case"),
        "long-name": _head("n" * 80),
        "number-name": _head("12"),
        "list-license": _head("list-license", "license: [MIT]"),
        "list-tools": _head("list-tools", "allowed-tools: [Read, Write]"),
        "not-a-number": _head("not-a-number", "weight: .nan"),
        "hidden": _head("hidden", description="See\u202e\U000e0041 this."),
        "half": b'---\nname: half\ndescription: "\\ud800 half"\n---\n',
        "colon": _head("ckm:design"),
    }
    heads |= _heads_of_other_programs() | _heads_with_odd_values()
    files = {name: {"SKILL.md": head} for name, head in heads.items()}
    contracts = {
        "contract-not-json": {"contract.json": b"{"},
        "contract-deep": {"contract.json": deep},
        "contract-not-an-object": {"contract.json": b'{"input": {"type": "string"}}'},
        "contract-unknown": {"contract.json": b'{"inputs": 1, "output": {"type": 7}}'},
        "contract-of-nothing": {
            "contract.json": b'{"input": {"type": "object"}, "run": {"script": "no.py"}}'
        },
        "contracts-in-a-row": {
            "contracts/a__b.json": nested,
            "contracts/a b.json": nested,
        },
        "script-not-python": {"scripts/run.py": b"def (:\n"},
        "descriptor-not-json": {"descriptor.json": b"[]"},
    }
    for name, own in (contracts | _odd_parts()).items():
        files[name] = {"SKILL.md": _head(name), **own}
    return files


def _heads_of_other_programs() -> dict[str, bytes]:
    """Return SKILL.md files in the encodings and line ends of other programs, by
    directory.
    """
    japanese = _head("shift-jis", description="\u65e5\u672c").decode()
    return {
        "two-byte-order-marks": b"\xef\xbb\xbf" * 2 + _head("two-byte-order-marks"),
        "crlf": _head("crlf").replace(b"\n", b"\r\n"),
        "cr": _head("cr").replace(b"\n", b"\r"),
        "utf-32": _head("utf-32").decode().encode("utf-32"),
        "shift-jis": japanese.encode("shift-jis"),
        "line-separators": _head("line-separators", description="a\u2028b\u0085c"),
        "toml": b'+++\nname = "toml"\ndescription = "x"\n+++\n',
        "one-line": _head("one-line") + b"x" * 5_000_000,
        # Their names are equal in NFKC.
        "caf\u00e9": _head("caf\u00e9"),
        "cafe\u0301": _head("cafe\u0301"),
        # A device of Windows, whatever its suffix.
        "con": _head("con"),
        "Case": _head("case", description="In another case."),
        "case": _head("case"),
        "[red]": _head("[red]", description="'See [/bold] {0} %s ${x}'"),
    }


def _heads_with_odd_values() -> dict[str, bytes]:
    """Return SKILL.md files with names, keys and values that a reader may not expect,
    by directory.
    """
    long_number = "9" * 6_000  # Python refuses to convert it
    return {
        "duplicate-keys": _head("duplicate-keys", "name: other", "description: y"),
        "tabs": _head("tabs", "metadata:", "\ta: b"),
        "bad-date": _head("bad-date", "version: 2024-13-45", "date: 2024-99-99"),
        "long-number": _head("long-number", f"version: {long_number}"),
        "no-string-keys": _head("no-string-keys", "1: x", "null: y", "? [a, b]", ": c"),
        "no-merge": _head("no-merge", "<<: 1"),
        "inside-itself": _head("inside-itself", "metadata: &m", "  a: *m"),
        "a-mapping": b"---\nname: {a: b}\ndescription: [a, b]\n---\n",
        "path": _head("../../path"),
        "two-lines": _head('"a\\nb"'),
        "version-in-name": _head("good@1.0.0"),
        "tool-in-name": _head("good__count"),
        "own-tool": _head("load_skill"),
        "same-name": _head("good"),
        "same-wide-name": _head("\uff47\uff4f\uff4f\uff44"),
    }


def _odd_parts() -> dict[str, dict[str, bytes]]:
    """Return the files beside the SKILL.md of skills, by directory."""
    long_number = b"9" * 6_000
    references = b'{"input": {"properties": {"a": {"$ref": "#/definitions/a"}}}, '
    aliases = b"a: &a [x, x, x, x, x, x, x, x]\n"
    for before, name in pairwise(b"abcdefghij"):
        aliases += b"%c: &%c [" % (name, name) + b"*%c, " % before * 8 + b"]\n"
    return {
        "contract-long-number": {
            "contract.json": b'{"input": {"maximum": ' + long_number + b"}}"
        },
        "contract-not-finite": {
            "contract.json": b'{"input": {"maximum": 1e999, "minimum": NaN}}'
        },
        "contract-of-huge-texts": {
            "contract.json": b'{"input": {"properties": {"a": {"type": "string", '
            b'"minLength": 1e30}}, "required": ["a"]}}'
        },
        "contract-pattern": {
            "contract.json": b'{"input": {"properties": {"a": {"pattern": "(("}}}}'
        },
        "contract-circle": {
            "contract.json": references
            + b'"definitions": {"a": {"$ref": "#/definitions/a"}}}'
        },
        "contract-half": {
            "contract.json": b'{"input": {"properties": {"\\ud800": {}}}}'
        },
        "contract-aliases": {"contract.yaml": aliases},
        "contract-keys": {"contract.yaml": b"input: {properties: {1: {}, null: {}}}\n"},
        "parts-are-directories": {
            "contract.json/x": b"",
            "descriptor.json/x": b"",
            "scripts/run.py/x": b"",
        },
        "parts-are-files": {"contracts": b"", "scripts": b"", "evals": b""},
        "odd-scripts": {
            "scripts/-x.py": b"import sys\nprint(sys.argv[1])\n",
            "scripts/aux.py": b"\0" * 100,
            "scripts/coding.py": b"# coding: no-such\nimport argparse\n",
            "scripts/deep.py": b"import argparse\nx = " + b"(" * 5_000,
        },
        "odd-descriptor": {"descriptor.json": b'{"id": ' + long_number + b"}"},
        "odd-evals": {"evals/evals.json": b'{"evals": [1, {"prompt": null}]}'},
        "odd-manifest": {".claude-plugin/plugin.json": b'{"name": ' + long_number},
    }


def write_bad_skills(directory: Path) -> list[str]:
    """Write bad skills below *directory*, and return the names of their directories."""
    written = _bad_files()
    for name, files in written.items():
        for path, data in files.items():
            target = directory / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
    names = [*written]
    if os.name == "posix":
        for name in ("fifo", "linked", "outside", "back-slash"):
            (directory / name).mkdir()
            names.append(name)
        os.mkfifo(directory / "fifo/SKILL.md")
        (directory / "linked/SKILL.md").write_bytes(_head("linked"))
        (directory / "linked/notes").symlink_to("/")
        (directory / "outside/SKILL.md").symlink_to("/dev/zero")
        (directory / "back-slash/SKILL.md").write_bytes(_head("back-slash"))
        (directory / "back-slash/a\\b.md").write_text("x")
        names += _write_special_files(directory)
    return names


def _write_special_files(directory: Path) -> list[str]:
    """Write skills with links, sockets, FIFOs and unreadable files below *directory*,
    and return the names of their directories.
    """
    directories = {
        name: directory / name
        for name in (
            "link-to-itself",
            "broken-link",
            "link-upwards",
            "a-directory",
            "socket",
            "fifo-parts",
            "odd-file-names",
            "unreadable",
            "unlistable",
        )
    }
    for name, path in directories.items():
        path.mkdir()
        if name not in ("link-to-itself", "broken-link", "a-directory", "socket"):
            (path / "SKILL.md").write_bytes(_head(name))
    (directories["link-to-itself"] / "SKILL.md").symlink_to("SKILL.md")
    (directories["broken-link"] / "SKILL.md").symlink_to("nothing")
    (directories["link-upwards"] / "up").symlink_to("..")
    (directories["a-directory"] / "SKILL.md").mkdir()
    # `mknod` instead of `bind`, whose paths are short.
    os.mknod(directories["socket"] / "SKILL.md", stat.S_IFSOCK | 0o600)
    for part in ("contract.json", "descriptor.json", "run.py"):
        os.mkfifo(directories["fifo-parts"] / part)
    for file_name in (b"\xff.md", b"a\nb.md", b"\x1b[2J.md", b"[red].md", b"x" * 255):
        path = os.fsencode(directories["odd-file-names"]) + b"/" + file_name
        Path(os.fsdecode(path)).write_bytes(b"x")
    # Root reads them all the same.
    (directories["unreadable"] / "SKILL.md").chmod(0)
    directories["unlistable"].chmod(0o311)
    return [*directories]
