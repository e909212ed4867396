"""What every test shares: one asynchronous backend unless a test asks for more, and
quiet, repeatable properties.
"""

from __future__ import annotations

import functools
import gc
import os
import re
import shutil
import socket
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from hypothesis import HealthCheck, settings

from skillruntime import ErrorCode, SkillResponse
from tests import needs

settings.register_profile(
    "repeatable",
    max_examples=100 if os.environ.get("CI") else 30,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
settings.load_profile("repeatable")


# Where the environment switches byte code off, each process that a test starts would
# compile every module again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# The modules and the tests that are collected stay to the end: looking at them again
# and again takes a tenth of a run.
gc.disable()

IS_BASE = "SKILLRUNTIME_TESTS_BASE" in os.environ
"""Whether the tests run in a plain install: what needs an extra is skipped then, and by
its error alone.
"""
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


@pytest.hookimpl(tryfirst=True)  # before what is slow is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        marker = item.get_closest_marker("quick_cases")
        if marker and case_of(item) not in marker.args[0]:
            item.add_marker(pytest.mark.slow)


def case_of(item: pytest.Item) -> str:
    """Return the id of a test's parameters."""
    return item.nodeid.partition("[")[2].removesuffix("]")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(
        20_000, 20, 50
    )  # a test leaves little to collect: look after 20,000 new objects, not 700
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    missing = _NO_MODULE.search(str(report.longrepr))
    if IS_BASE and report.failed and missing:
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, needs.to_install(missing[1]))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with skipping_missing_modules():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with skipping_missing_modules():
        return (yield)


@contextmanager
def skipping_missing_modules() -> Iterator[None]:
    """In a plain install, skip a test that needs the module of an extra."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (
            IS_BASE
            and error.name is not None
            and not error.name.startswith("skillruntime")
        ):
            pytest.skip(needs.to_install(error.name))
        raise


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Return half as many processes again as xdist would start: a third of the time, a
    test waits.
    """
    workers = yield
    return (
        workers if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ else workers * 3 // 2
    )


ENVIRONMENT = {
    # A terminal that can draw, of the usual size; colours are a test's own decision.
    "TERM": "xterm",
    "COLUMNS": "80",
    "LINES": "25",
    # Processes that a test starts import this checkout, whatever else is installed.
    "PYTHONPATH": str(Path(__file__).parents[1]),
}
"""What the tests and the processes that they start see, wherever they run. A test that
needs another value sets it.
"""
if sys.platform == "linux":
    ENVIRONMENT["LC_ALL"] = "C.UTF-8"  # others need not have this locale

OF_THE_HOST = {
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "NO_COLOR",
    "PYTHON_COLORS",
    "PY_COLORS",
    "SKILLRUNTIME_CACHE",
    "SKILLRUNTIME_DEBUG",
    "SKILLRUNTIME_MCP_TOKEN",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
}
"""What no test sees unless it sets it, like every variable of Git."""


@pytest.fixture(scope="session", autouse=True)
def own_environment() -> Iterator[None]:
    """Give the tests the same environment on each machine: a user may have set
    ``NO_COLOR``, and a hook of Git sets ``GIT_DIR``.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name in OF_THE_HOST or name.startswith("GIT_"):
                patch.delenv(name)
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        yield


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


LEVELS = (
    ("bubblewrap", "landlock") if shutil.which("bwrap") else ("landlock", "bubblewrap")
)
"""The levels of the sandbox, first the one that every test of it is run at; at the
other one they are slow.
"""


LEVEL_NEEDS = {
    "bubblewrap": "apt-get install bubblewrap, and user namespaces",
    "landlock": "Linux 5.13 or newer, with Landlock",
}


@pytest.fixture(params=[LEVELS[0], pytest.param(LEVELS[1], marks=pytest.mark.slow)])
def level(request: pytest.FixtureRequest) -> str:
    """Each level in turn; one that this machine lacks is skipped, and under CI a
    failure.
    """
    name: str = request.param
    if (reason := _sandbox_failures()[name]) is not None:
        if os.environ.get("CI"):
            pytest.fail(f"{name}: {reason}")
        pytest.skip(f"needs the sandbox level {name}: {LEVEL_NEEDS[name]} ({reason})")
    return name


@pytest.fixture(scope="session")
def some_sandbox() -> None:
    """Skip where no sandbox works; a fixture, because the answer is found by starting
    one.
    """
    if sys.platform != "linux" or all(_sandbox_failures().values()):
        either = " or ".join(LEVEL_NEEDS.values())
        pytest.skip(f"needs a sandbox: {either}")


@pytest.fixture
def sandbox_if_untrusted(request: pytest.FixtureRequest) -> None:
    """Do as `some_sandbox` where the parameter ``trusted`` of the test is false; a
    trusted script needs none.
    """
    if not request.getfixturevalue("trusted"):
        request.getfixturevalue("some_sandbox")


def _sandbox_failures() -> Mapping[str, str | None]:
    """Return why each level of the sandbox does not work here, None for one that does.

    The levels are tried by starting processes, on behalf of the whole run: the test
    that happens to ask first need not be marked as one that starts them.
    """
    global _unmarked
    from skillruntime.runtime import sandbox_report

    before, _unmarked = _unmarked, None
    try:
        return anyio.run(sandbox_report)
    finally:
        _unmarked = before


STARTS = {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system"}
_unmarked: str | None = None
"""The test that runs, if it is not marked as one that starts processes."""


def _is_script(event: str, arguments: tuple[Any, ...]) -> bool:
    # A script is started by the launcher, which gets its descriptors in a message of
    # this kind of socket.
    return event == "socket.sendmsg" and arguments[0].type == getattr(
        socket, "SOCK_SEQPACKET", None
    )


def _refuse_processes(event: str, arguments: tuple[Any, ...]) -> None:
    if _unmarked is not None and (event in STARTS or _is_script(event, arguments)):
        pytest.fail(
            f"{_unmarked} starts a process: mark it with @pytest.mark.processes"
        )


sys.addaudithook(_refuse_processes)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let only tests that are marked start processes, so that those which are not are
    quick.
    """
    global _unmarked
    _unmarked = (
        None
        if item.get_closest_marker("processes") or item.get_closest_marker("slow")
        else item.nodeid
    )
    try:
        return (yield)
    finally:
        _unmarked = None


ENVELOPE = {
    "type": "object",
    "required": ["status"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["success", "partial_success", "failed"]},
        "data": True,
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["code", "message", "recoverable"],
                "additionalProperties": False,
                "properties": {
                    "code": {"enum": [code.value for code in ErrorCode]},
                    "message": {"type": "string", "minLength": 1},
                    "recoverable": {"type": "boolean"},
                    "details": {"type": "object", "minProperties": 1},
                    "suggested_action": {"type": "string", "minLength": 1},
                },
            },
        },
        "metadata": {"type": "object", "minProperties": 1},
    },
    "if": {"properties": {"status": {"const": "failed"}}},
    "then": {"required": ["errors"]},
}
"""The envelope of the contract document (31.4), as a schema: every response in a test
is validated against it.
"""

_judge = jsonschema.Draft202012Validator(ENVELOPE)
_to_dict = SkillResponse.to_dict


@functools.wraps(_to_dict)
def _judged_to_dict(response: SkillResponse) -> dict[str, Any]:
    document = _to_dict(response)
    _judge.validate(document)
    return document


# Not in a fixture, which each of thousands of tests would set and undo.
SkillResponse.to_dict = _judged_to_dict
