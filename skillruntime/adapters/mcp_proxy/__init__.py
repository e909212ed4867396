"""A proxy between any MCP client and any MCP server that repairs the arguments of tool
calls, or refuses them.

It frames messages itself, and does not import the SDK: every byte that it does not have
to change passes as it is. The public names are listed in `__init__.pyi`.
"""

from skillruntime.lazy_exports import lazy_exports

__getattr__, __dir__ = lazy_exports(__name__)
