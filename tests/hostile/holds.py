"""``python -m tests.hostile.holds``: ways in which a script holds memory, each without an
end, and how much of it the host loses.

A script prints a line for each `STEP` bytes once it holds them and never gives one
back, so what it printed says how much it held when it ended, whatever else the machine
does meanwhile.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import anyio

from skillruntime.runtime import Limits, SandboxCommand, interpreter_paths, open_sandbox
from tests.runtime.parts import Finished

__all__ = ["LIMIT", "MOST", "STEP", "WAYS", "held_by"]

LIMIT = 1024**3
MOST = 1280 * 1024**2
"""What the host may lose where a script has the usual limit of 1 GiB: 1.25 GiB. Most
ways take below 1.1 GiB; forty processes on fast memory took up to 1.2 GiB.
"""
STEP = 4 * 1024**2

_START = """
import ctypes, mmap, os, sys, tempfile, threading, time
from ctypes import c_int, c_long, c_size_t, c_void_p
STEP = 4 << 20
PRIVATE, SHARED, NO_FILE = mmap.MAP_PRIVATE, mmap.MAP_SHARED, mmap.MAP_ANONYMOUS
libc = ctypes.CDLL(None)
libc.mmap.restype = c_void_p
libc.mmap.argtypes = (c_void_p, c_size_t, c_int, c_int, c_int, c_long)
libc.memset.argtypes = (c_void_p, c_int, c_size_t)
libc.mprotect.argtypes = (c_void_p, c_size_t, c_int)
libc.madvise.argtypes = (c_void_p, c_size_t, c_int)
libc.munmap.argtypes = (c_void_p, c_size_t)
libc.mremap.argtypes = (c_void_p, c_size_t, c_size_t, c_int)
libc.mremap.restype = c_void_p
def holds():
    os.write(1, b"held\\n")
def mapped(flags, file=-1, size=STEP, protection=3):
    address = libc.mmap(None, size, protection, flags, file, 0)
    if address in (None, 2**64 - 1):
        raise MemoryError
    return address
def filled(flags, file=-1, size=STEP):
    address = mapped(flags, file, size)
    libc.memset(address, 1, size)
    return address
def written(file):
    os.write(file, b"x" * STEP)
    holds()
def memory_file(size=STEP):
    file = os.memfd_create("f")
    os.truncate(file, size)
    return file
def wait():
    time.sleep(600)
"""

WAYS = {
    "private": "while True: filled(PRIVATE | NO_FILE); holds()",
    "bytes": "kept = []\nwhile True: kept.append(b'x' * STEP); holds()",
    "private of children": (
        "for _ in range(8):\n"
        "    if os.fork() == 0:\n"
        "        for _ in range(64): filled(PRIVATE | NO_FILE); holds()\n"
        "        wait()\n"
        "wait()"
    ),
    "private of daemons": (
        "for _ in range(16):\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        if os.fork(): os._exit(0)\n"
        "        for _ in range(32): filled(PRIVATE | NO_FILE); holds()\n"
        "        wait()\n"
        "wait()"
    ),
    "growing down": "while True: filled(PRIVATE | NO_FILE | 0x100); holds()",
    "read-only again": (
        "while True:\n"
        "    part = filled(PRIVATE | NO_FILE)\n"
        "    libc.mprotect(part, STEP, 1)\n"
        "    holds()"
    ),
    "shared": "while True: filled(SHARED | NO_FILE); holds()",
    "shared, dropped": (
        "while True:\n"
        "    libc.madvise(filled(SHARED | NO_FILE), STEP, mmap.MADV_DONTNEED)\n"
        "    holds()"
    ),
    "shared, one page left": (
        "while True:\n"
        "    part = filled(SHARED | NO_FILE)\n"
        "    libc.munmap(part + 4096, STEP - 4096)\n"
        "    holds()"
    ),
    "shared, given a name": (
        "while True:\n"
        "    part = filled(SHARED | NO_FILE)\n"
        "    libc.prctl(0x53564D41, 0, c_void_p(part), c_size_t(STEP), b'heap')\n"
        "    libc.madvise(part, STEP, mmap.MADV_DONTNEED)\n"
        "    holds()"
    ),
    "shared, of a child that never touched it": (
        "while True:\n"
        "    parts = [mapped(SHARED | NO_FILE) for _ in range(16)]\n"
        "    if os.fork() == 0: wait()\n"
        "    for part in parts:\n"
        "        libc.memset(part, 1, STEP)\n"
        "        libc.munmap(part, STEP)\n"
        "        holds()"
    ),
    "shared, moved": (
        "while True:\n"
        "    part = filled(SHARED | NO_FILE)\n"
        "    mirror = libc.mremap(part, 0, STEP, 1)\n"
        "    libc.munmap(part, STEP)\n"
        "    holds()"
    ),
    "/dev/zero": (
        "zero = os.open('/dev/zero', os.O_RDWR)\n"
        "while True:\n"
        "    libc.madvise(filled(SHARED, zero), STEP, mmap.MADV_DONTNEED)\n"
        "    holds()"
    ),
    "page tables": (
        # Each page that is read takes a table of 4 KiB.
        "while True:\n"
        "    part = mapped(PRIVATE | NO_FILE | 0x4000, size=2 << 30, protection=1)\n"
        "    for at in range(part, part + (2 << 30), 2 << 20): ctypes.string_at(at, 1)\n"
        "    holds()"
    ),
    "memory file": (
        "while True:\n"
        "    file = os.memfd_create('f')\n"
        "    for _ in range(16): written(file)"
    ),
    "memory file, closed": (
        "while True:\n"
        "    file = memory_file()\n"
        "    part = filled(SHARED, file)\n"
        "    os.close(file)\n"
        "    libc.madvise(part, STEP, mmap.MADV_DONTNEED)\n"
        "    holds()"
    ),
    "memory file, closed, one page mapped": (
        "while True:\n"
        "    file = os.memfd_create('f')\n"
        "    part = mapped(PRIVATE, file, 4096, 1)\n"
        "    for _ in range(16): written(file)\n"
        "    os.close(file)"
    ),
    "memory files of children": (
        "for _ in range(40):\n"
        "    if os.fork() == 0:\n"
        "        file = os.memfd_create('f')\n"
        "        for _ in range(16): written(file)\n"
        "        wait()\n"
        "wait()"
    ),
    "memory file that is the program": (
        "program = open('/bin/sleep', 'rb').read()\n"
        "while True:\n"
        "    file = os.memfd_create('f')\n"
        "    os.write(file, program)\n"
        "    for _ in range(16): written(file)\n"
        "    if os.fork() == 0:\n"
        "        os.execve(f'/proc/self/fd/{file}', ['sleep', '600'], {})\n"
        "    os.close(file)"
    ),
    "of the thread that is left": (
        "def fill():\n"
        "    while True:\n"
        "        libc.madvise(filled(SHARED | NO_FILE), STEP, mmap.MADV_DONTNEED)\n"
        "        holds()\n"
        "threading.Thread(target=fill).start()\n"
        "libc.syscall(60, 0)"
    ),
    "memory files on their way": (
        "import socket\n"
        "kept = []\n"
        "while True:\n"
        "    pair = socket.socketpair()\n"
        "    kept.append(pair)\n"
        "    for _ in range(8):\n"
        "        file = memory_file()\n"
        "        os.write(file, b'x' * STEP)\n"
        "        socket.send_fds(pair[0], [b'x'], [file])\n"
        "        os.close(file)\n"
        "        holds()"
    ),
    "shared, beside many mappings": (
        "for _ in range(10):\n"
        "    if os.fork() == 0:\n"
        "        part = mapped(PRIVATE | NO_FILE, size=240 << 20)\n"
        "        for at in range(part, part + (240 << 20), 8192):\n"
        "            libc.mprotect(at, 4096, 1)\n"
        "        wait()\n"
        "while True: filled(SHARED | NO_FILE); holds()"
    ),
    "hidden from the host": (
        "libc.prctl(4, 0, 0, 0, 0)\n"
        "while True:\n"
        "    libc.madvise(filled(SHARED | NO_FILE), STEP, mmap.MADV_DONTNEED)\n"
        "    holds()"
    ),
    "removed temporary files": (
        "while True:\n"
        "    with tempfile.TemporaryFile() as file:\n"
        "        os.truncate(file.fileno(), STEP)\n"
        "        filled(SHARED, file.fileno())\n"
        "    holds()"
    ),
    "temporary files and memory": (
        "try:\n"
        "    file = open('/tmp/f', 'wb', 0)\n"
        "    for _ in range(50): written(file.fileno())\n"
        "except OSError: pass\n"
        "while True: filled(SHARED | NO_FILE); holds()"
    ),
    "/dev/shm and memory": (
        "try:\n"
        "    for n in range(2):\n"
        "        file = open(f'/dev/shm/{n}', 'wb', 0)\n"
        "        for _ in range(50): written(file.fileno())\n"
        "except OSError: pass\n"
        "while True: filled(PRIVATE | NO_FILE); holds()"
    ),
    "shared, of threads": (
        "def fill():\n"
        "    while True: filled(SHARED | NO_FILE); holds()\n"
        "for _ in range(8): threading.Thread(target=fill).start()"
    ),
}
"""The ways, by name."""


async def held_by(way: str, level: str, workspace: Path) -> tuple[int, Finished]:
    """Run a way at *level*; return how many bytes it held when it ended, and how it
    ended.
    """
    sandbox = await open_sandbox(level)
    command = SandboxCommand(
        (sys.executable, "-I", "-S", "-c", _START + WAYS[way]),
        workspace,
        readable=interpreter_paths(sys.executable),
        writable=(workspace,),
        limits=Limits(memory=LIMIT),
    )
    with anyio.fail_after(300):
        finished = await sandbox.run(command)
    return finished.stdout.count(b"held\n") * STEP, finished


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile.holds", description=__doc__
    )
    parser.add_argument("level", choices=["bubblewrap", "landlock"])
    options = parser.parse_args()
    held = {}
    for way in WAYS:
        with tempfile.TemporaryDirectory() as workspace:
            held[way], _ = anyio.run(held_by, way, options.level, Path(workspace))
    sys.stdout.write(json.dumps(held, indent=1) + "\n")


if __name__ == "__main__":
    main()
