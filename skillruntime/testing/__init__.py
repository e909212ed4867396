"""Tools for users' own tests. The public names are listed in `__init__.pyi`."""

from skillruntime.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
