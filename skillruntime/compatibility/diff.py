"""Where two schemas in normal form differ, and what each difference means for the
giving and the taking side.

On the input side callers give what the old schema admits, and the new one takes it; on
the output side the new schema gives and the old one takes. A difference breaks where
the taker does not admit all that is given. There are two readings: set theory takes the
schemas literally; the practical one takes objects as closed on the giving side (callers
send only what is declared) and, for output, as open on the taking side (readers ignore
members that are new to them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from enum import IntEnum
from typing import Any

from skillruntime.compatibility.containment import Containment, for_member
from skillruntime.compatibility.normal_form import BRANCHES, closed
from skillruntime.contract.migration.value_conversions import same_as, show

__all__ = ["Bump", "Finding", "differences", "opened"]


class Bump(IntEnum):
    """The part of a version that a change requires to rise."""

    NONE = 0
    PATCH = 1
    MINOR = 2
    MAJOR = 3

    def __str__(self) -> str:
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One difference: at which place of the values, by which rule, and what each
    reading asks for.

    ``ruling`` is the rule of the contract document (31.5), if it has one. ``old`` and
    ``new`` are the schemas there.
    """

    path: tuple[str, ...]
    rule: str
    why: str
    practical: Bump
    set_theory: Bump
    ruling: Bump | None = None
    old: Any = True
    new: Any = True
    details: dict[str, Any] = field(default_factory=dict)


def differences(
    old: Any, new: Any, *, is_output: bool, containment: Containment
) -> list[Finding]:
    """Return how *new* differs from *old*, both in normal form."""
    return list(_Difference(is_output, containment).at((), old, new))


def opened(node: Any) -> Any:
    """Return the normal form *node* as a tolerant reader takes it: objects may hold
    more than is declared.
    """
    if isinstance(node, dict):
        shut = {
            keyword
            for keyword in ("additionalProperties", "unevaluatedProperties")
            if node.get(keyword) is False
        }
        # Inside `not`, opening would narrow what is admitted; constants hold values and
        # not schemas.
        return {
            keyword: value if keyword in ("const", "enum", "not") else opened(value)
            for keyword, value in node.items()
            if keyword not in shut
        }
    return [opened(child) for child in node] if isinstance(node, list) else node


_ABOUT = {
    "description",
    "title",
    "examples",
    "$comment",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
}
_SCALAR = {
    *(
        "type",
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
    ),
    *(
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "minItems",
        "maxItems",
        "uniqueItems",
    ),
    *("minProperties", "maxProperties"),
}
_OF_OBJECTS = {"properties", "patternProperties", "additionalProperties", "required"}
_OF_ARRAYS = {"items", "prefixItems"}


def _only(node: dict[str, Any], keywords: set[str]) -> dict[str, Any]:
    return {keyword: node[keyword] for keyword in node.keys() & keywords}


def _same(left: Any, right: Any) -> bool:
    return left is right or bool(same_as(left) == same_as(right))


class _Difference:
    def __init__(self, is_output: bool, containment: Containment) -> None:
        self.is_output = is_output
        self._covers = containment.covers

    def _judged(self, old: Any, new: Any) -> Bump:
        """Return what the change from *old* to *new* asks for by containment: major,
        minor or patch.
        """
        giver, taker = (new, old) if self.is_output else (old, new)
        # Containment one way and not the other is an addition; both ways, another way
        # of writing it.
        if not self._covers(taker, giver):
            return Bump.MAJOR
        return Bump.PATCH if self._covers(giver, taker) else Bump.MINOR

    def _practically(self, old: Any, new: Any) -> Bump:
        return (
            self._judged(opened(old), closed(new))
            if self.is_output
            else self._judged(closed(old), closed(new))
        )

    def _whole(
        self, path: tuple[str, ...], rule: str, why: str, old: Any, new: Any
    ) -> Finding:
        practical, strict = self._readings(old, new)
        return Finding(path, rule, why, practical, strict, None, old, new)

    def _readings(self, old: Any, new: Any) -> tuple[Bump, Bump]:
        """Return both readings; what breaks in theory is not nothing in practice."""
        # Set theory may call a change of an open object MAJOR where practice sees none:
        # something changed, so MINOR.
        practical, strict = self._practically(old, new), self._judged(old, new)
        return (
            max(practical, Bump.MINOR) if strict is Bump.MAJOR else practical
        ), strict

    def at(self, path: tuple[str, ...], old: Any, new: Any) -> Iterator[Finding]:
        """Yield the differences at *path* and below."""
        if old is new or _same(old, new):
            return
        if not isinstance(old, dict) or not isinstance(new, dict):
            yield self._whole(
                path,
                "schema-changed",
                f"before, {_allowed(old)} was allowed here; now {_allowed(new)} is",
                old,
                new,
            )
            return
        yield from self._about(path, old, new)
        # Constraints of the old type mean nothing for the new one, so parts are not
        # compared further.
        if not _same(old.get("type"), new.get("type")):
            why = (
                f"the type was {show(old.get('type', 'any'))} and is "
                f"{show(new.get('type', 'any'))}"
            )
            yield self._whole(path, "type-changed", why, _bare(old), _bare(new))
            return
        handled = _ABOUT | _SCALAR
        yield from self._scalars(path, old, new)
        types = old.get("type")
        # Without a type, an object schema still has members and an array schema items:
        # both are compared.
        kinds = {types} if isinstance(types, str) else set(types or ("object", "array"))
        if "object" in kinds:
            handled |= _OF_OBJECTS
            yield from self._objects(path, old, new)
        if "array" in kinds:
            handled |= _OF_ARRAYS
            yield from self._arrays(path, old, new)
        yield from self._others(path, old, new, handled)

    def _about(
        self, path: tuple[str, ...], old: dict[str, Any], new: dict[str, Any]
    ) -> Iterator[Finding]:
        sentinel = object()
        # A default of null differs from none (JSON Schema Validation 2020-12, 9.2).
        before, after = old.get("default", sentinel), new.get("default", sentinel)
        if (before is sentinel) != (after is sentinel) or not _same(before, after):
            shown = [
                "none" if value is sentinel else show(value)
                for value in (before, after)
            ]
            why = (
                f"the default was {shown[0]} and is {shown[1]}: a call that leaves it "
                "out means something else"
            )
            yield Finding(
                path, "default-changed", why, Bump.MINOR, Bump.PATCH, None, old, new
            )
        # Only the mark's arrival counts: SemVer section 7 says nothing about taking it
        # back.
        if new.get("deprecated") is True and old.get("deprecated") is not True:
            why = (
                "it is marked as deprecated, which SemVer (section 7) makes a minor "
                "change"
            )
            yield Finding(
                path, "deprecated", why, Bump.MINOR, Bump.PATCH, None, old, new
            )
        texts = ("description", "title", "examples")
        if any(not _same(old.get(keyword), new.get(keyword)) for keyword in texts):
            yield Finding(
                path,
                "text-changed",
                "only its description changed",
                Bump.PATCH,
                Bump.PATCH,
                None,
                old,
                new,
            )

    def _scalars(
        self, path: tuple[str, ...], old: dict[str, Any], new: dict[str, Any]
    ) -> Iterator[Finding]:
        changed = sorted(
            word
            for word in _SCALAR
            if not _same(old.get(word), new.get(word)) or (word in old) != (word in new)
        )
        if not changed:
            return
        mine, theirs = _only(old, _SCALAR), _only(new, _SCALAR)
        # All scalar keywords are judged at once first: `minimum: 1` is
        # `exclusiveMinimum: 0` for integers.
        overall = self._judged(mine, theirs)
        choices = [_choices(node) for node in (old, new)]
        # 31.5 rules on enum values by name, so they are reported value by value.
        if (
            choices[0] is not None
            and choices[1] is not None
            and {"enum", "const"} & set(changed)
        ):
            yield from self._choices(path, choices[0], choices[1], old, new, overall)
            changed = [
                keyword for keyword in changed if keyword not in ("enum", "const")
            ]
        # One keyword alone can look harmless only by its type: `minLength` for an
        # integer.
        kind = {"type": old["type"]} if "type" in old else {}
        for keyword in changed:
            bump = overall
            if overall is Bump.MAJOR and len(changed) > 1:
                bump = self._judged(
                    kind | _only(old, {keyword}), kind | _only(new, {keyword})
                )
            was, now = (
                show(node[keyword]) if keyword in node else "not limited"
                for node in (old, new)
            )
            rule = {
                Bump.MAJOR: "constraint-tightened",
                Bump.MINOR: "constraint-loosened",
            }.get(bump, "constraint-rewritten")
            if self.is_output:
                rule = {
                    "constraint-tightened": "promise-loosened",
                    "constraint-loosened": "promise-tightened",
                }.get(rule, rule)
            yield Finding(
                path,
                rule,
                f"{keyword} was {was} and is {now}",
                bump,
                bump,
                None,
                old,
                new,
                {"keyword": keyword},
            )

    def _choices(
        self,
        path: tuple[str, ...],
        before: list[Any],
        after: list[Any],
        old: Any,
        new: Any,
        overall: Bump,
    ) -> Iterator[Finding]:
        was, now = (
            {same_as(value) for value in before},
            {same_as(value) for value in after},
        )
        # By `same_as`, 1 and 1.0 are one choice, and 1 and true are two (JSON Schema
        # Core 2020-12, 4.2.2).
        added = [value for value in after if same_as(value) not in was]
        removed = [value for value in before if same_as(value) not in now]
        broken = min(Bump.MAJOR, overall) if overall is Bump.MAJOR else overall
        if added:
            # A reader of outputs may not know the new value; 31.5 rules MINOR
            # nevertheless.
            bump = broken if self.is_output else Bump.MINOR
            why = f"{', '.join(map(show, added))} may now be chosen"
            yield Finding(
                path,
                "enum-value-added",
                why,
                bump,
                bump,
                Bump.MINOR,
                old,
                new,
                {"values": added},
            )
        if not added and not removed:
            why = "the same values are listed in another way"
            yield Finding(
                path,
                "constraint-rewritten",
                why,
                Bump.PATCH,
                Bump.PATCH,
                None,
                old,
                new,
            )
        if removed:
            bump = Bump.MINOR if self.is_output else broken
            why = f"{', '.join(map(show, removed))} may no longer be chosen"
            yield Finding(
                path,
                "enum-value-removed",
                why,
                bump,
                bump,
                None,
                old,
                new,
                {"values": removed},
            )

    def _objects(
        self, path: tuple[str, ...], old: dict[str, Any], new: dict[str, Any]
    ) -> Iterator[Finding]:
        before, after = old.get("properties", {}), new.get("properties", {})
        needed, needs = set(old.get("required", ())), set(new.get("required", ()))
        renamed = _renamed(before, after, needed, needs)
        for name, other in renamed.items():
            yield self._renamed(path, name, other, old, new)
        for name in before:
            if name in after:
                yield from self.at((*path, name), before[name], after[name])
            elif name not in renamed:
                yield self._removed(path, name, old, new)
        for name in after:
            if name not in before and name not in renamed.values():
                yield self._added(path, name, old, new)
        # A member that is new and required was reported as added, one that was renamed
        # as renamed.
        for name in sorted(needs - needed):
            if name not in renamed.values() and (name in before or name not in after):
                yield self._now_required(path, name, old, new)
        for name in sorted(needed - needs):
            if name not in renamed and (name in after or name not in before):
                bump = Bump.MAJOR if self.is_output else Bump.MINOR
                ruling = Bump.MAJOR if self.is_output else None
                why = (
                    f"{name!r} was always there, and may now be missing"
                    if self.is_output
                    else f"{name!r} may be left out"
                )
                yield Finding(
                    (*path, name),
                    "no-longer-required",
                    why,
                    bump,
                    bump,
                    ruling,
                    old,
                    new,
                    {"name": name},
                )
        yield from self._rest(path, old, new)

    def _renamed(
        self, path: tuple[str, ...], name: str, other: str, old: Any, new: Any
    ) -> Finding:
        required = name in old.get("required", ())
        why = f"{name!r} was renamed to {other!r}"
        details = {"name": name, "new_name": other}
        # A reader of outputs was ready for an optional field to be missing.
        practical = Bump.MAJOR if required or not self.is_output else Bump.MINOR
        ruling = Bump.MAJOR if required else None
        rule = "field-renamed" if self.is_output else "parameter-renamed"
        return Finding(
            (*path, name), rule, why, practical, Bump.MAJOR, ruling, old, new, details
        )

    def _removed(self, path: tuple[str, ...], name: str, old: Any, new: Any) -> Finding:
        schema, rest = old["properties"][name], new.get("additionalProperties", True)
        required = name in old.get("required", ()) and name not in new.get(
            "required", ()
        )
        strict = self._judged(for_member(old, name), for_member(new, name))
        practical = Bump.MINOR if self.is_output else Bump.MAJOR
        if "additionalProperties" in new and rest is not False and not self.is_output:
            practical = strict  # it says what it does with what it does not declare
        if required:  # it may be missing now, under any schema
            strict = max(strict, Bump.MINOR)
        # Readers rely on a required field; no reading of objects as open or closed
        # changes that.
        if self.is_output and required:
            practical = strict = Bump.MAJOR
        ruling = Bump.MAJOR if required else None
        why = (
            f"{name!r} is "
            f"{'no longer returned' if self.is_output else 'no longer declared'}"
        )
        rule = "field-removed" if self.is_output else "parameter-removed"
        return Finding(
            (*path, name),
            rule,
            why,
            practical,
            strict,
            ruling,
            old,
            new,
            {"name": name, "schema": schema},
        )

    def _added(self, path: tuple[str, ...], name: str, old: Any, new: Any) -> Finding:
        schema, rest = new["properties"][name], old.get("additionalProperties", True)
        required = name in new.get("required", ()) and name not in old.get(
            "required", ()
        )
        strict = self._judged(for_member(old, name), for_member(new, name))
        practical = Bump.MINOR
        # An explicit `additionalProperties` says that callers may have sent this name
        # before.
        if "additionalProperties" in old and rest is not False and not self.is_output:
            practical = max(strict, Bump.MINOR)
        details = {"name": name, "schema": schema}
        if required:  # it is now required, under any schema
            strict = max(strict, Bump.MINOR)
        if self.is_output:
            ruling = (
                Bump.MAJOR if required else Bump.MINOR
            )  # 31.5: required output changed; an optional field added
            why = f"{name!r} is returned now" + ("" if required else ", sometimes")
            return Finding(
                (*path, name),
                "field-added",
                why,
                practical,
                strict,
                ruling,
                old,
                new,
                details,
            )
        if required:
            why = f"{name!r} must be given now, and old calls do not give it"
            rule = "required-parameter-added"
            return Finding(
                (*path, name),
                rule,
                why,
                Bump.MAJOR,
                Bump.MAJOR,
                None,
                old,
                new,
                details,
            )
        why = f"{name!r} may be given now"
        if strict is Bump.MAJOR:
            why += "; by set theory old calls might have sent anything under this name"
        return Finding(
            (*path, name),
            "optional-parameter-added",
            why,
            practical,
            strict,
            Bump.MINOR,
            old,
            new,
            details,
        )

    def _now_required(
        self, path: tuple[str, ...], name: str, old: Any, new: Any
    ) -> Finding:
        # 31.5: a change of what the output requires is MAJOR in either direction.
        bump = Bump.MINOR if self.is_output else Bump.MAJOR
        ruling = Bump.MAJOR if self.is_output else None
        why = (
            f"{name!r} is always there now"
            if self.is_output
            else f"{name!r} may no longer be left out"
        )
        return Finding(
            (*path, name),
            "now-required",
            why,
            bump,
            bump,
            ruling,
            old,
            new,
            {"name": name},
        )

    def _rest(self, path: tuple[str, ...], old: Any, new: Any) -> Iterator[Finding]:
        """Yield what changed about the members that are not declared by name."""
        if not _same(
            old.get("patternProperties", {}), new.get("patternProperties", {})
        ):
            keys = [set(node.get("patternProperties", {})) for node in (old, new)]
            # Under the same patterns schemas are compared one by one; otherwise the
            # patterns' overlap is unknown.
            if keys[0] == keys[1]:
                for pattern in sorted(keys[0]):
                    yield from self.at(
                        (*path, "*"),
                        old["patternProperties"][pattern],
                        new["patternProperties"][pattern],
                    )
            else:
                yield self._whole(
                    path,
                    "pattern-properties-changed",
                    "the names that are allowed changed",
                    old,
                    new,
                )
        before, after = (node.get("additionalProperties", True) for node in (old, new))
        written = [("additionalProperties" in node) for node in (old, new)]
        if _same(before, after) and written[0] == written[1]:
            return
        # Two schemas for undeclared members are compared like any other member's.
        if isinstance(before, dict) and isinstance(after, dict):
            yield from self.at((*path, "*"), before, after)
            return
        strict = self._judged(before, after)
        declared = [
            written[0] and before is not False,
            written[1] and after is not False,
        ]
        # If a schema does not mention undeclared members, callers are assumed to send
        # none.
        practical = (
            min(strict, Bump.MINOR) if self.is_output or not declared[0] else strict
        )
        if declared[1] and not declared[0]:
            practical = max(practical, Bump.MINOR)
        words = {True: "accepted", False: "refused"}
        was, now = (
            words.get(value, "checked") if isinstance(value, bool) else "checked"
            for value in (before, after)
        )
        why = f"undeclared members were {was} and are {now} now"
        rule = "additional-properties-changed"
        yield Finding(
            (*path, "*"),
            rule,
            why,
            practical,
            strict,
            None,
            old,
            new,
            {"undeclared": True},
        )

    def _arrays(
        self, path: tuple[str, ...], old: dict[str, Any], new: dict[str, Any]
    ) -> Iterator[Finding]:
        before, after = old.get("prefixItems", []), new.get("prefixItems", [])
        # Places are compared by index; when their number changes, an item moves between
        # `prefixItems` and `items`.
        if len(before) != len(after):
            keywords = {"type", "items", "prefixItems", "minItems", "maxItems"}
            parts = [_only(node, keywords) for node in (old, new)]
            yield self._whole(
                path,
                "items-changed",
                "the number of items with their own schema changed",
                *parts,
            )
            return
        for index, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from self.at((*path, str(index)), left, right)
        yield from self.at((*path, "*"), old.get("items", True), new.get("items", True))

    def _others(
        self,
        path: tuple[str, ...],
        old: dict[str, Any],
        new: dict[str, Any],
        handled: set[str],
    ) -> Iterator[Finding]:
        words = (old.keys() | new.keys()) - handled - {"$ref", "$defs", "definitions"}
        changed = sorted(
            word
            for word in words
            if not _same(old.get(word), new.get(word)) or (word in old) != (word in new)
        )
        if not changed:
            return
        for keyword in BRANCHES:
            if keyword in changed:
                inside = self._branches(path, keyword, old, new)
                yield from inside
                if inside and self._is_shown_by(inside, keyword, old, new):
                    changed.remove(keyword)
        # JSON Schema Core 2020-12, 6.5: unknown keywords are annotations.
        unknown = [word for word in changed if word not in _JUDGED]
        if unknown:
            why = f"{', '.join(unknown)} changed, which does not affect what is valid"
            yield Finding(
                path, "annotation-changed", why, Bump.PATCH, Bump.PATCH, None, old, new
            )
        judged = [word for word in changed if word in _JUDGED]
        if judged:
            yield self._of_keywords(path, judged, old, new)

    def _branches(
        self,
        path: tuple[str, ...],
        keyword: str,
        old: dict[str, Any],
        new: dict[str, Any],
    ) -> list[Finding]:
        """Return the differences inside branches that became others, so that they name
        the member and not the union.
        """
        pairs = _pairs(
            old.get(keyword, ()), new.get(keyword, ()), in_order=keyword == "allOf"
        )
        return [finding for pair in pairs for finding in self.at(path, *pair)]

    def _is_shown_by(
        self,
        inside: list[Finding],
        keyword: str,
        old: dict[str, Any],
        new: dict[str, Any],
    ) -> bool:
        """Whether what was found inside the branches is all that changed about the
        union.
        """
        # `oneOf` refuses values that two branches admit, which comparing single
        # branches does not show.
        claimed = any(finding.set_theory is Bump.MAJOR for finding in inside)
        return keyword != "oneOf" or claimed or self._judged(old, new) < Bump.MAJOR

    def _of_keywords(
        self,
        path: tuple[str, ...],
        judged: list[str],
        old: dict[str, Any],
        new: dict[str, Any],
    ) -> Finding:
        # A keyword is compared with those that it depends on: `then` without `if` has
        # no effect.
        words = set(judged).union(
            {"type"}, *(family for family in _FAMILIES if family & set(judged))
        )
        practical, strict = self._readings(*(_only(node, words) for node in (old, new)))
        if max(practical, strict) > Bump.PATCH:
            whole = self._readings(old, new)
            if Bump.MAJOR in (practical, strict) or whole == (Bump.PATCH, Bump.PATCH):
                practical, strict = whole
        why = f"{', '.join(judged)} changed"
        return Finding(
            path, f"{judged[0]}-changed", why, practical, strict, None, old, new
        )


_JUDGED = {
    *(
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "minContains",
        "maxContains",
    ),
    *(
        "dependentRequired",
        "dependentSchemas",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
    ),
}


_MOST_RENAMES = 400
_FAMILIES = ({"contains", "minContains", "maxContains"}, {"if", "then", "else"})
"""Keywords that mean nothing without one another."""


def _pairs(old: Any, new: Any, *, in_order: bool) -> list[tuple[Any, Any]]:
    """Return the branches that changed, old and new, where it is plain which became
    which.
    """
    # Matching branches is quadratic, and a union of more than 20 is compared well
    # enough as a whole.
    if len(old) != len(new) or len(old) > 20:
        return []
    if in_order:
        return [pair for pair in zip(old, new, strict=True) if not _same(*pair)]
    before = [
        branch for branch in old if not any(_same(branch, other) for other in new)
    ]
    after = [branch for branch in new if not any(_same(branch, other) for other in old)]
    alike = len(before) == len(after) and all(map(_alike, before, after))
    return list(zip(before, after, strict=True)) if alike else []


def _alike(old: Any, new: Any) -> bool:
    if (
        not isinstance(old, dict)
        or not isinstance(new, dict)
        or not _same(old.get("type"), new.get("type"))
    ):
        return False
    names = [set(node.get("properties", {})) for node in (old, new)]
    return names[0] == names[1] or bool(names[0] & names[1])


def _allowed(schema: Any) -> str:
    """Return what *schema* allows in words; it is compared with a boolean one."""
    if isinstance(schema, bool):
        return "any value" if schema else "no value"
    return "only what a schema describes"


def _bare(node: dict[str, Any]) -> dict[str, Any]:
    return {keyword: value for keyword, value in node.items() if keyword not in _ABOUT}


def _choices(node: dict[str, Any]) -> list[Any] | None:
    listed = node.get("enum")
    if "const" in node:  # next to an enum that does not list it, nothing fits
        is_listed = not isinstance(listed, list) or any(
            same_as(each) == same_as(node["const"]) for each in listed
        )
        return [node["const"]] if is_listed else []
    return list(listed) if isinstance(listed, list) else None


def _renamed(
    before: Any, after: Any, needed: set[str], needs: set[str]
) -> dict[str, str]:
    """Return the renamed properties: same schema, equally required, and only one
    candidate.
    """
    gone = [name for name in before if name not in after]
    come = [name for name in after if name not in before]
    found: dict[str, str] = {}
    # Each pair costs a comparison of texts: 300 renamed parameters would take seconds.
    if len(gone) * len(come) > _MOST_RENAMES:
        return found
    for name in gone:
        like = [
            other
            for other in come
            if (name in needed) == (other in needs)
            and _same(_stripped(before[name]), _stripped(after[other]))
        ]
        # 0.5 keeps `topic` -> `topics` and `count` -> `max_count`, and separates `lang`
        # from `limit`.
        near = [
            other for other in like if SequenceMatcher(None, name, other).ratio() >= 0.5
        ]
        pick = (
            like if len(like) == 1 and (len(gone) == len(come) == 1 or near) else near
        )
        if len(pick) == 1 and pick[0] not in found.values():
            found[name] = pick[0]
    return found


def _stripped(node: Any) -> Any:
    return _bare(node) if isinstance(node, dict) else node
