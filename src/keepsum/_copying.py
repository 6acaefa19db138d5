"""Objects that are copied and pickled without what they have worked out, which may hold addresses of memory."""

from __future__ import annotations

from functools import cached_property
from typing import Any


class WithoutCaches:
    """A copy, also one in another process, has no value of a ``cached_property``: it works them out again."""

    def __getstate__(self) -> dict[str, Any]:
        cached = {
            name
            for kind in type(self).__mro__
            for name, value in vars(kind).items()
            if isinstance(value, cached_property)
        }
        return {name: value for name, value in vars(self).items() if name not in cached}
