"""Inner names of the runtime that more than the test of their module needs: imported once,
here.
"""

from __future__ import annotations

from skillruntime.runtime.files.temporary import remove_tree
from skillruntime.runtime.files.workspace import Workspace
from skillruntime.runtime.sandbox.launcher_process import launcher_process
from skillruntime.runtime.sandbox.protocol import Finished

__all__ = ["Finished", "Workspace", "launcher_process", "remove_tree"]
