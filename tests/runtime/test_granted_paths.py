"""A granted directory stays the one that the host named, whatever a script of an
earlier call puts in its place.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anyio
import pytest

from skillruntime.catalog import SkillCatalog
from skillruntime.contract import SkillResponse
from skillruntime.errors import ErrorCode
from skillruntime.runtime import (
    Grants,
    SandboxCommand,
    SkillRuntime,
    interpreter_paths,
    open_sandbox,
)
from tests import needs
from tests.runtime.parts import Finished, Workspace

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(sys.platform != "linux", reason=needs.LINUX),
]

WriteSkill = Callable[..., SkillCatalog]

# What a script tries by each path: it returns what it read, and leaves a file where it
# can.
TRY = """
import json, pathlib, sys
read = []
for path in map(pathlib.Path, {paths!r}):
    try:
        read.append((path / 'secret').read_text())
    except OSError:
        pass
    try:
        (path / 'written').write_text('x')
        read.append('wrote')
    except OSError:
        pass
    try:
        read.append(path.read_text())
    except OSError:
        pass
print(json.dumps(read))
"""


class Places:
    """A workspace, a directory that one skill may write, and one outside both that no
    script may reach.
    """

    def __init__(self, base: Path, write_skill: WriteSkill) -> None:
        self.base = base
        self.workspace = base / "workspace"
        self.shared = base / "shared"
        self.outside = base / "outside"
        for directory in (self.workspace, self.shared, self.outside / "out"):
            directory.mkdir(parents=True)
        for directory in (self.outside, self.outside / "out"):
            (directory / "secret").write_text("canary")
        self._write_skill = write_skill

    def catalog(self, first: str, *tried: Path) -> SkillCatalog:
        """Return two untrusted skills: `first` runs this source, `second` tries to
        reach *tried*.
        """
        self._write_skill(first + "\nprint('true')", name="first", trusted=False)
        source = TRY.format(
            paths=[str(path) for path in (*tried, self.outside, self.outside / "out")]
        )
        return self._write_skill(source, name="second", trusted=False)

    def runtime(
        self, catalog: SkillCatalog, level: str, **options: Any
    ) -> SkillRuntime:
        return SkillRuntime(
            catalog,
            approve=lambda request: True,
            sandbox=level,
            **{"workspace": self.workspace, "shared_workspace": True, **options},
        )

    def is_untouched(self) -> bool:
        return sorted(path.name for path in self.outside.rglob("*")) == [
            "out",
            "secret",
            "secret",
        ]


@pytest.fixture
def places(tmp_path: Path, write_skill: WriteSkill) -> Places:
    return Places(tmp_path, write_skill)


def exchange(path: Path, target: Path) -> str:
    """Return what a script does to put a link to *target* in the place of *path*."""
    return (
        "import os\n"
        f"if os.path.lexists({str(path)!r}): os.rename({str(path)!r}, {str(path)!r} + "
        "'-old')\n" + (f"os.symlink({str(target)!r}, {str(path)!r})")
    )


def is_contained(response: SkillResponse) -> bool:
    """Whether the script was refused, or ran and read nothing of the secret."""
    if response.status == "failed":
        assert response.errors is not None
        return response.errors[0].code is ErrorCode.ACCESS_DENIED
    return "canary" not in response.data


@pytest.mark.parametrize("inside", ["workspace", "shared"])
@pytest.mark.parametrize("kind", ["directory", "parent", "file", "not there yet"])
def test_a_granted_path_that_a_script_exchanged_is_not_followed(
    places: Places, level: str, inside: str, kind: str
) -> None:
    """In the workspace, or in a directory granted to the first skill: the second
    reaches nothing outside.
    """
    root: Path = getattr(places, inside)
    granted = root / "kept" / "out"
    (root / "kept").mkdir()
    if kind == "file":
        granted.write_text("own")
    elif kind != "not there yet":
        granted.mkdir()
    exchanged, target = {
        "directory": (granted, places.outside),
        "parent": (root / "kept", places.outside),
        "file": (granted, places.outside / "secret"),
        "not there yet": (granted, places.outside),
    }[kind]
    catalog = places.catalog(exchange(exchanged, target), granted)
    runtime = places.runtime(
        catalog,
        level,
        grants={
            "first": Grants(write=(str(places.shared),)),
            "second": Grants(write=(str(granted),)),
        },
    )

    first = runtime.call_sync("first", {})
    second = runtime.call_sync("second", {})

    assert first.data is True, first.errors
    assert exchanged.is_symlink()
    assert is_contained(second), second.data
    assert places.is_untouched()


def test_a_grant_of_one_call_follows_no_link_of_the_workspace(
    places: Places, level: str
) -> None:
    """A host that grants the same path for each call does not grant what a script put
    there meanwhile.
    """
    granted = places.workspace / "out"
    granted.mkdir()
    runtime = places.runtime(
        places.catalog(exchange(granted, places.outside), granted), level
    )
    runtime.call_sync("first", {})

    second = runtime.call_sync("second", {}, grants=Grants(write=(str(granted),)))

    assert is_contained(second), second.data
    assert places.is_untouched()


def test_a_workspace_inside_a_granted_directory_is_not_exchanged(
    places: Places, level: str
) -> None:
    """What the link leads to is not written, read, listed or copied out."""
    workspace = places.shared / "workspace"
    workspace.mkdir()
    catalog = places.catalog(exchange(workspace, places.outside), workspace)
    grants = {"first": Grants(write=(str(places.shared),))}
    runtime = places.runtime(catalog, level, grants=grants, workspace=workspace)

    with runtime.session(workspace=Workspace(workspace)) as session:
        assert session.workspace.directory == workspace
        first = session.call_sync("first", {})
        second = session.call_sync("second", {})

        with pytest.raises(OSError, match="symbolic link"):
            session.workspace.copy_out("secret", places.base / "copied")

    assert first.data is True, first.errors
    assert is_contained(second), second.data
    for response in (first, second):
        assert "files" not in (response.metadata or {})
    assert places.is_untouched()
    assert not (places.base / "copied").exists()


def test_a_link_that_the_host_grants_is_refused(places: Places, level: str) -> None:
    """A script could have made it: the host names the directory that it leads to."""
    (places.base / "data").mkdir()
    link = places.base / "link"
    link.symlink_to("data")
    runtime = places.runtime(
        places.catalog("", link), level, grants={"second": Grants(write=(str(link),))}
    )

    second = runtime.call_sync("second", {})

    assert second.errors is not None
    assert second.errors[0].code is ErrorCode.ACCESS_DENIED
    assert (
        f"{str(link)!r} is now reached through a symbolic link"
        in second.errors[0].message
    )


def test_a_granted_directory_that_the_host_makes_again_is_granted(
    places: Places, level: str
) -> None:
    """A grant is for a place: the host may remove what is there and make another
    directory.
    """
    granted = places.base / "data"
    granted.mkdir()
    runtime = places.runtime(
        places.catalog("", granted),
        level,
        grants={"second": Grants(write=(str(granted),))},
    )
    granted.rename(places.base / "old")
    granted.mkdir()

    second = runtime.call_sync("second", {})

    assert second.data == ["wrote"], second.errors
    assert (granted / "written").exists()


def test_a_granted_path_that_is_not_there_is_named(places: Places, level: str) -> None:
    """The person reads which grant it is, and not that the script cannot be
    executed.
    """
    granted = places.base / "later"
    runtime = places.runtime(
        places.catalog("", granted),
        level,
        grants={"second": Grants(write=(str(granted),))},
    )

    refused = runtime.call_sync("second", {})
    granted.mkdir()
    allowed = runtime.call_sync("second", {})

    assert refused.errors is not None
    assert refused.errors[0].code is ErrorCode.ACCESS_DENIED
    assert f"{str(granted)!r} does not exist" in refused.errors[0].message
    assert allowed.data == ["wrote"], allowed.errors


def test_a_granted_file_can_be_written(places: Places, level: str) -> None:
    """And what lies beside it cannot."""
    granted = places.base / "notes.txt"
    granted.write_text("a")
    source = (
        f"open({str(granted)!r}, 'a').write('b')\n"
        f"open({str(places.base / 'beside')!r}, 'w')"
    )
    runtime = places.runtime(
        places.catalog(source), level, grants={"first": Grants(write=(str(granted),))}
    )

    runtime.call_sync("first", {})

    assert granted.read_text() == "ab"
    assert not (places.base / "beside").exists()


@contextmanager
def exchanging(path: Path, link: Path) -> Iterator[None]:
    """Meanwhile, exchange *path* and *link* for each other as fast as possible, in
    another thread.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    ends = threading.Event()

    def exchange() -> None:
        while not ends.is_set():
            # renameat2(2) with RENAME_EXCHANGE: at no moment is there nothing.
            libc.syscall(
                316 if os.uname().machine == "x86_64" else 276,
                -100,
                bytes(path),
                -100,
                bytes(link),
                2,
            )

    thread = threading.Thread(target=exchange)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


@pytest.mark.parametrize("exchanged", ["directory", "parent"])
@pytest.mark.anyio
async def test_a_granted_path_is_not_exchanged_while_a_command_starts(
    places: Places, level: str, exchanged: str
) -> None:
    """Whatever another script does at that moment: the command gets the directory
    itself, or does not start.
    """
    granted = places.shared / "kept" / "out"
    granted.mkdir(parents=True)
    place = granted if exchanged == "directory" else granted.parent
    link = places.shared / "link"
    link.symlink_to(places.outside)
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (
            sys.executable,
            "-I",
            "-S",
            "-c",
            TRY.format(paths=[str(granted), str(places.outside)]),
        ),
        places.workspace,
        readable=interpreter_paths(sys.executable),
        writable=(places.workspace, granted),
    )
    finished: list[Finished | OSError] = []

    with exchanging(place, link):
        for _ in range(20):
            with anyio.fail_after(300):
                try:
                    finished.append(await sandbox.run(command))
                except OSError as error:
                    finished.append(error)

    assert len(finished) == 20
    assert not any(
        isinstance(each, Finished) and b"canary" in each.stdout for each in finished
    )
    assert places.is_untouched()


@pytest.mark.anyio
async def test_granted_paths_leave_no_descriptor_open(
    places: Places, level: str
) -> None:
    """A host may serve for months: what a call opened is closed when it ends, also
    where it was refused.
    """
    catalog = places.catalog("")
    there, missing = (
        Grants(write=(str(places.shared),)),
        Grants(write=(str(places.base / "missing"),)),
    )
    runtime = places.runtime(catalog, level)
    for grants in (there, missing):
        await runtime.call("second", {}, grants=grants)
    before = sum(1 for _ in Path("/proc/self/fd").iterdir())

    for grants in (there, missing) * 3:
        await runtime.call("second", {}, grants=grants)

    assert sum(1 for _ in Path("/proc/self/fd").iterdir()) == before


@pytest.mark.anyio
async def test_a_command_has_no_descriptor_of_a_granted_path(
    places: Places, level: str
) -> None:
    """One would lead to everything above it, past the namespace and past Landlock."""
    source = (
        "import fcntl\nfound = []\nfor number in range(3, 1000):\n    try:\n"
        "        fcntl.fcntl(number, fcntl.F_GETFD)\n        found.append(number)\n"
        "    except OSError:\n        pass\nprint(found)"
    )
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (sys.executable, "-I", "-S", "-c", source),
        places.workspace,
        readable=interpreter_paths(sys.executable),
        writable=(places.workspace, places.shared),
    )

    assert (await sandbox.run(command)).stdout == b"[]\n"


@pytest.mark.anyio
@pytest.mark.skipif(not needs.is_root(), reason=needs.ROOT_USER)
async def test_a_directory_of_the_system_can_be_granted(
    places: Places, level: str
) -> None:
    """Below /opt other files are readable to every command: a granted directory there
    is writable too.
    """
    with TemporaryDirectory(dir="/opt") as made:
        sandbox = await open_sandbox(level)
        command = SandboxCommand(
            (sys.executable, "-I", "-S", "-c", f"open({made!r} + '/written', 'w')"),
            places.workspace,
            readable=interpreter_paths(sys.executable),
            writable=(places.workspace, Path(made)),
        )

        finished = await sandbox.run(command)

        assert finished.exit_code == 0, finished.stderr
        assert Path(made, "written").stat().st_uid == 0


@pytest.mark.anyio
@pytest.mark.parametrize("exchanged", ["directory", "parent"])
async def test_a_readable_directory_inside_the_workspace_is_not_exchanged(
    places: Places, level: str, exchanged: str
) -> None:
    """Where the interpreter or other files to read lie in it, a link in their place
    leads to nothing.
    """
    readable = places.workspace / "kept" / "out"
    readable.mkdir(parents=True)
    (readable / "secret").write_text("own")
    paths = [str(readable), str(places.outside), str(places.outside / "out")]
    command = SandboxCommand(
        (sys.executable, "-I", "-S", "-c", TRY.format(paths=paths)),
        places.workspace,
        readable=(*interpreter_paths(sys.executable), readable),
        writable=(places.workspace,),
    )
    sandbox = await open_sandbox(level)

    before = await sandbox.run(command)
    place = readable if exchanged == "directory" else readable.parent
    place.rename(places.workspace / "old")
    place.symlink_to(places.outside)
    after = await sandbox.run(command)

    assert b"own" in before.stdout, before.stderr
    assert b"canary" not in after.stdout
    assert after.exit_code == 0, after.stderr
    assert places.is_untouched()
