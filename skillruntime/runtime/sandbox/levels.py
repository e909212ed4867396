"""Choose the sandbox for an untrusted script: the best level of this machine that
passed its self-test, or none.
"""

from __future__ import annotations

import logging
import shutil
import sys

import anyio

from skillruntime.errors import AccessDeniedError
from skillruntime.runtime.sandbox.launcher import LocalSandbox
from skillruntime.runtime.sandbox.protocol import LEVELS, Sandbox, require_level
from skillruntime.runtime.sandbox.seccomp import is_supported

if sys.platform == "linux":
    from skillruntime.runtime.sandbox import landlock, self_test

__all__ = ["LEVELS", "open_sandbox", "sandbox_report"]

_REMEDIES = {
    "bubblewrap": "install bubblewrap (apt install bubblewrap) and allow user "
    "namespaces",
    "landlock": "use Linux 5.13 or newer with 'landlock' among the security modules "
    "(lsm=...)",
}
_ATTEMPTS = 2
# For the life of this process: a test takes 50 ms.
_known: dict[str, LocalSandbox | str] = {}
_warned: set[str] = set()
_log = logging.getLogger("skillruntime.runtime")


async def open_sandbox(choice: str | Sandbox) -> Sandbox:
    """Return the sandbox that *choice* names (``"auto"``, a level, or a sandbox
    itself), once it passed its self-test.

    Raises:
        AccessDeniedError: no sandbox works; the error names what is missing and what
            would help.
    """
    if not isinstance(choice, str):
        if choice.level == "none":
            raise AccessDeniedError(
                "The host's sandbox confines nothing, so an untrusted script is not "
                "run in it",
                suggested_action="Tell the user: the host can leave out `sandbox=` to "
                "use the best one of this machine",
            )
        return choice
    require_level(choice)
    # A level requested by name is used or refused, and never replaced by a weaker one.
    names = LEVELS if choice == "auto" else (choice,)
    missing: dict[str, str] = {}
    for name in names:
        result = await _tested(name)
        if isinstance(result, LocalSandbox):
            _warn_of_weaker(name, missing)
            return result
        missing[name] = result
    reasons = "; ".join(f"{name}: {reason}" for name, reason in missing.items())
    remedies = ", or to ".join(_REMEDIES[name] for name in names)
    raise AccessDeniedError(
        f"There is no working sandbox for this script: {reasons}",
        details={"missing": missing},
        suggested_action=f"Tell the user to {remedies}",
    )


def _warn_of_weaker(level: str, missing: dict[str, str]) -> None:
    """Log once why *level* is used although a better level is installed and failed. A
    level that is not installed is not worth a warning.
    """
    for name, reason in missing.items():
        if name in _known and name not in _warned:
            _warned.add(name)
            _log.warning(
                "untrusted scripts run at the level %s: %s is installed, but %s",
                level,
                name,
                reason,
            )


async def sandbox_report() -> dict[str, str | None]:
    """Return for each level why it cannot be used on this machine; None if it passed
    its self-test.
    """
    report: dict[str, str | None] = {}
    for name in LEVELS:
        result = await _tested(name)
        report[name] = result if isinstance(result, str) else None
    return report


async def _tested(name: str) -> LocalSandbox | str:
    """Return the sandbox of the level *name* after it passed its self-test, or the
    reason why it did not.
    """
    if name in _known:  # the results in this process; a new process tests again
        return _known[name]
    sandbox = _present(name)
    if isinstance(sandbox, str):
        return sandbox
    # Two calls at once may both test. That costs time, but a lock would tie two event
    # loops together. The shield is for a call whose deadline passes during the test,
    # because a half-done test would count as a failure.
    with anyio.CancelScope(shield=True):
        _known[name] = await _failure_of(sandbox) or sandbox
    return _known[name]


async def _failure_of(sandbox: LocalSandbox) -> str | None:
    """Return why *sandbox* cannot be relied on, if it failed twice. After a single
    failure, on a machine that is briefly short of memory or time, scripts would run at
    a weaker level.
    """
    failure = None
    for _ in range(_ATTEMPTS):
        failure = await self_test.failure_of(sandbox)
        if failure is None:
            break
    return failure


def _present(name: str) -> LocalSandbox | str:
    """Return the untested sandbox of a level, or what it lacks."""
    if sys.platform != "linux":
        return f"it needs Linux, and this is {sys.platform}"
    if not is_supported():
        return "the system calls of this processor are not known"
    if name == "landlock":
        abi = landlock.kernel_abi()
        if not abi:
            return "the kernel has no Landlock"
        return LocalSandbox("landlock", abi=abi)
    bubblewrap = shutil.which("bwrap")
    if bubblewrap is None:
        return "bwrap is not installed"
    return LocalSandbox("bubblewrap", bubblewrap=bubblewrap)
