"""Define what a call must look like: schemas, coercion, versions, the response
envelope.

The public names are listed in `__init__.pyi`.
"""

from skillruntime.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
