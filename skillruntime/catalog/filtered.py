"""A mapping that shows only some of another one's values, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

__all__ = ["Filtered"]

_Value = TypeVar("_Value")


def _nothing(key: str) -> None:
    return None


class Filtered(Mapping[str, _Value]):
    """The items of *whole* whose value *keeps* accepts; it is asked at each use.

    For a key whose value it rejects, *instead* may have another one.
    """

    __slots__ = ("_instead", "_keeps", "_length", "_whole")

    def __init__(
        self,
        whole: Mapping[str, _Value],
        keeps: Callable[[_Value], bool],
        instead: Callable[[str], _Value | None] = _nothing,
    ) -> None:
        self._whole = whole
        self._keeps = keeps
        self._instead = instead
        self._length: int | None = None

    def __getitem__(self, key: str) -> _Value:
        value = self._whole[key]
        if self._keeps(value):
            return value
        other = self._instead(key)
        if other is None:
            raise KeyError(key)
        return other

    def __iter__(self) -> Iterator[str]:
        keeps, instead = self._keeps, self._instead
        return (key for key, value in self._whole.items() if keeps(value) or instead(key) is not None)

    def __len__(self) -> int:
        if self._length is None:  # neither mapping changes
            self._length = sum(1 for _ in self)
        return self._length

    def __bool__(self) -> bool:
        return next(iter(self), None) is not None
