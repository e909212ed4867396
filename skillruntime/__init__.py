"""The typed layer for Agent Skills: load them cheaply, enforce their contracts, run
them, answer in one envelope.

The public names are listed in `__init__.pyi`; each is imported when it is first used.
"""

from skillruntime._version import __version__ as __version__
from skillruntime.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
