"""Scripts report their progress in a file of their working directory, whatever they write there."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from skillruntime.catalog.discovery import discover
from skillruntime.remote.protocol import Progress
from skillruntime.runtime.runtime import SkillRuntime
from skillruntime.server.open_executions import memory_executions
from skillruntime.server.published_skill import SkillWork, serve_catalog
from skillruntime.server.script_progress import following, read_progress
from skillruntime.server.service import SkillService
from tests.server.serving import Served, Skills, read
from tests.skill_files import write_skill_files

SCRIPT = """
import json, os, sys, time
text = json.load(sys.stdin)["text"]
with open(".progress.new", "w") as file:
    json.dump({"done": 3, "total": 10, "message": "reading"}, file)
os.replace(".progress.new", ".progress.json")
while not os.path.exists(text):
    time.sleep(0.01)
open("made.txt", "w").write("kept")
print(json.dumps({"said": text}))
"""
CONTRACT = """{"version": "1.0.0", "input": {"type": "object", "properties": {"text": {"type": "string"}}},
"run": {"script": "scripts/run.py"}}"""


@pytest.mark.anyio
async def test_the_progress_of_a_script_is_seen_by_its_caller(tmp_path: Path) -> None:
    """While it runs; the file itself is not among those that the script made."""
    go = tmp_path / "go"
    write_skill_files(tmp_path / "s", "reader", "Reads", {"scripts/run.py": SCRIPT, "contract.json": CONTRACT})
    runtime = SkillRuntime(discover(tmp_path / "s", trusted=True))
    published = serve_catalog(runtime, base_url="http://127.0.0.1:8400")
    async with memory_executions(SkillWork(runtime, published)) as executions:
        service = SkillService(published, executions)
        served = Served(service, Skills(), service.handle)
        begun = read(await served.invoke("reader", str(go)))
        with anyio.fail_after(300):
            async for execution in executions.watch(begun["execution_id"]):
                if execution.progress is not None:
                    go.touch()
                last = execution

    assert last.progress == Progress(3, 10, "reading")
    assert last.output == {"said": str(go)}
    assert [each["path"] for each in (last.metadata or {})["files"]] == ["made.txt"]


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        ('{"done": 1}', Progress(1)),
        ('{"done": 1, "total": "x", "message": 5}', Progress(1)),
        ('{"done": 1, "message": "\\u001b[31m"}', Progress(1, None, "\N{REPLACEMENT CHARACTER}[31m")),
        ('{"done": 1, "to', None),
        ('{"done": true}', None),
        ('{"done": NaN}', None),
        ('{"done": 1' + "0" * 400 + "}", None),
        ('{"done": 1, "total": -1' + "0" * 400 + "}", Progress(1)),
        ('{"done": 1}' + " " * 10_000_000, Progress(1)),
        ("[1]", None),
        ("[" * 4000, None),
        ("", None),
    ],
)
def test_what_is_not_progress_is_ignored(text: str, progress: Progress | None, tmp_path: Path) -> None:
    """A script may be killed in the middle of writing, or write anything."""
    path = tmp_path / "p"
    path.write_text(text)

    assert read_progress(path) == progress


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_neither_a_link_nor_a_pipe_is_read(tmp_path: Path) -> None:
    """An untrusted script must not show its caller another file, nor block the server."""
    target = tmp_path / "target"
    target.write_text('{"done": 1}')
    (tmp_path / "link").symlink_to(target)
    os.mkfifo(tmp_path / "pipe")

    assert read_progress(tmp_path / "link") is None
    assert read_progress(tmp_path / "pipe") is None


@pytest.mark.anyio
@pytest.mark.skipif(os.open not in os.supports_dir_fd, reason="needs descriptors of directories")
async def test_progress_is_read_in_the_directory_that_the_script_was_given(tmp_path: Path) -> None:
    """Also where a script exchanged it for a link to the directory of another one."""
    for name, done in (("own", 1), ("other", 2)):
        (tmp_path / name).mkdir()
        (tmp_path / name / ".progress.json").write_text(f'{{"done": {done}}}')
    seen: list[Progress] = []
    reported = anyio.Event()

    def report(progress: Progress) -> None:
        seen.append(progress)
        reported.set()

    with anyio.fail_after(300):
        async with following(tmp_path / "own", report):
            (tmp_path / "own").rename(tmp_path / "moved")
            (tmp_path / "own").symlink_to(tmp_path / "other")
            await reported.wait()

    assert seen == [Progress(1)]
