"""A mapping that shows only some of another one's values, without a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

__all__ = ["Filtered"]

_Value = TypeVar("_Value")


class Filtered(Mapping[str, _Value]):
    """The items of *whole* whose value *keeps* accepts; it is asked at each use."""

    __slots__ = ("_keeps", "_length", "_whole")

    def __init__(self, whole: Mapping[str, _Value], keeps: Callable[[_Value], bool]) -> None:
        self._whole = whole
        self._keeps = keeps
        self._length: int | None = None

    def __getitem__(self, key: str) -> _Value:
        value = self._whole[key]
        if not self._keeps(value):
            raise KeyError(key)
        return value

    def __iter__(self) -> Iterator[str]:
        return (key for key, value in self._whole.items() if self._keeps(value))

    def __len__(self) -> int:
        if self._length is None:  # neither mapping changes
            self._length = sum(map(self._keeps, self._whole.values()))
        return self._length

    def __bool__(self) -> bool:
        return any(map(self._keeps, self._whole.values()))
